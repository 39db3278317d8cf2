import { createHash } from 'node:crypto'
import type { SchemaChecker, SchemaVerdict } from '../../contract/schema-checker.ts'
import { BrainError, clip } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { SchemaLane } from './schema-lane.ts'

const MAX_SCHEMA_BYTES = 64 * 1024
const MAX_MESSAGE_LENGTH = 1000
const MAX_SUSPECTS = 1000

type Printed = { readonly text: string; readonly digest: string }

/** Opens the checker. Its thread starts now, so that the first check does not wait for it. */
export const openSchemaChecker = (): SchemaChecker => new ThreadedSchemaChecker()

/**
 * Two lanes: a schema that has once cost a thread its life is checked in the second from then on, so that it can delay
 * others once, and after that only its like.
 */
class ThreadedSchemaChecker implements SchemaChecker {
  readonly #common: SchemaLane
  readonly #suspect: SchemaLane
  readonly #suspects = new Set<string>()
  readonly #printed = new WeakMap<JsonObject, Printed>()
  #closed = false

  constructor() {
    this.#suspect = new SchemaLane(() => undefined)
    this.#common = new SchemaLane((digest) => this.#setApart(digest))
    this.#common.start()
  }

  checkSchema(schema: JsonObject): Promise<SchemaVerdict> {
    return this.#check(schema)
  }

  checkValue(schema: JsonObject, valueText: string): Promise<SchemaVerdict> {
    return this.#check(schema, valueText)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    await Promise.all([this.#common.close(), this.#suspect.close()])
  }

  async #check(schema: JsonObject, value?: string): Promise<SchemaVerdict> {
    if (this.#closed) throw new BrainError('internal', 'Cannot check a schema: the checker is closed')
    const { text, digest } = this.#print(schema)
    const bytes = Buffer.byteLength(text)
    if (bytes > MAX_SCHEMA_BYTES)
      return invalid(`the schema has ${bytes} bytes, which is over the limit of ${MAX_SCHEMA_BYTES}`)
    const lane = this.#suspects.has(digest) ? this.#suspect : this.#common
    const fault = await new Promise<string | undefined>((resolve, reject) => {
      lane.add({ digest, schema: text, value, settle: resolve, fail: reject })
    })
    return fault === undefined ? { valid: true } : invalid(fault)
  }

  /** Callers keep their schemas: each is printed and named once. */
  #print(schema: JsonObject): Printed {
    const known = this.#printed.get(schema)
    if (known !== undefined) return known
    const text = JSON.stringify(schema)
    const printed = { text, digest: createHash('sha256').update(text).digest('base64') }
    this.#printed.set(schema, printed)
    return printed
  }

  #setApart(digest: string): void {
    const [oldest] = this.#suspects
    if (this.#suspects.size >= MAX_SUSPECTS && oldest !== undefined) this.#suspects.delete(oldest)
    this.#suspects.add(digest)
    for (const job of this.#common.withdraw(digest)) this.#suspect.add(job)
  }
}

const invalid = (message: string): SchemaVerdict => ({ valid: false, message: clip(message, MAX_MESSAGE_LENGTH) })
