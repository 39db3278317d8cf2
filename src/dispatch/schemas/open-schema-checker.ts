import { createHash } from 'node:crypto'
import type { SchemaChecker, SchemaVerdict } from '../../contract/schema-checker.ts'
import { BrainError, clip } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { SchemaLane } from './schema-lane.ts'
import { isSurelyValid } from './surely-valid.ts'

const MIB = 1024 * 1024
const MAX_SCHEMA_BYTES = 64 * 1024
const CHECK_LIMIT_MS = 250
/** Values up to this length pass in the quick lane. */
const QUICK_VALUE_LENGTH = MIB
/** What carrying and parsing a large value may take besides, on a busy machine; no schema is to blame for it. */
const LARGE_VALUE_MS_PER_MIB = 50
const MAX_MESSAGE_LENGTH = 1000
const MAX_COSTLY = 1000
const MAX_TRUSTED = 1000

type Printed = { readonly text: string; readonly digest: string }

export interface TrustingSchemaChecker extends SchemaChecker {
  /** Says that an earlier checker found this schema usable: it is not looked at again. */
  trust(schema: JsonObject): void
}

/**
 * Opens the checker.
 * @param atOnce whether its thread starts now, so that the first check does not wait for it, or with that check. Default true
 */
export const openSchemaChecker = ({ atOnce = true } = {}): TrustingSchemaChecker => new ThreadedSchemaChecker(atOnce)

/**
 * Two lanes, each a thread: the quick one, and one for what would hold others up there, which is large values and every
 * schema that has once cost a thread its life. So a bad schema delays good ones once, and after that only its like.
 */
class ThreadedSchemaChecker implements TrustingSchemaChecker {
  readonly #quick: SchemaLane
  readonly #slow: SchemaLane
  readonly #costly = new Set<string>()
  readonly #printed = new WeakMap<JsonObject, Printed>()
  /** Schemas that a thread has found usable. */
  readonly #sound = new WeakSet<JsonObject>()
  readonly #trusted = new Set<string>()
  #closed = false

  constructor(atOnce: boolean) {
    this.#slow = new SchemaLane(() => undefined)
    this.#quick = new SchemaLane((digest) => this.#setApart(digest))
    if (atOnce) this.#quick.start()
  }

  trust(schema: JsonObject): void {
    if (this.#trusted.size < MAX_TRUSTED) this.#trusted.add(this.#print(schema).digest)
  }

  async checkSchema(schema: JsonObject): Promise<SchemaVerdict> {
    if (this.#closed || !this.#trusted.has(this.#print(schema).digest)) return this.#check(schema)
    this.#sound.add(schema)
    return VALID
  }

  async checkValue(schema: JsonObject, valueText: string): Promise<SchemaVerdict> {
    const isQuick = !this.#closed && this.#sound.has(schema) && isSurelyValid(schema, valueText)
    return isQuick ? VALID : this.#check(schema, valueText)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    await Promise.all([this.#quick.close(), this.#slow.close()])
  }

  async #check(schema: JsonObject, value?: string): Promise<SchemaVerdict> {
    if (this.#closed) throw new BrainError('internal', 'Cannot check a schema: the checker is closed')
    const { text, digest } = this.#print(schema)
    const bytes = Buffer.byteLength(text)
    if (bytes > MAX_SCHEMA_BYTES)
      return invalid(`the schema has ${bytes} bytes, which is over the limit of ${MAX_SCHEMA_BYTES}`)
    const length = value?.length ?? 0
    const isLarge = length > QUICK_VALUE_LENGTH
    const lane = isLarge || this.#costly.has(digest) ? this.#slow : this.#quick
    const limitMs = CHECK_LIMIT_MS + (isLarge ? Math.ceil(length / MIB) * LARGE_VALUE_MS_PER_MIB : 0)
    const fault = await new Promise<string | undefined>((settle, fail) => {
      lane.add({ digest, schema: text, value, limitMs, settle, fail })
    })
    if (fault !== undefined) return invalid(fault)
    this.#sound.add(schema)
    return VALID
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
    const [oldest] = this.#costly
    if (this.#costly.size >= MAX_COSTLY && oldest !== undefined) this.#costly.delete(oldest)
    this.#costly.add(digest)
    for (const job of this.#quick.withdraw(digest)) this.#slow.add(job)
  }
}

const VALID: SchemaVerdict = { valid: true }
const invalid = (message: string): SchemaVerdict => ({ valid: false, message: clip(message, MAX_MESSAGE_LENGTH) })
