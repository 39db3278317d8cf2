import { Worker } from 'node:worker_threads'
import { BrainError, messageOf } from '../../kernel/errors.ts'
import { threadEnvironment } from '../../kernel/thread-environment.ts'
import type { Call, CallTable, FromThread, Reply, StoreSettings, ToThread } from './protocol.ts'

type Pending = { resolve(value: unknown): void; reject(error: BrainError): void }

/**
 * The calling side of a store thread. Calls of one tick leave as one message and are answered in order. A thread that
 * dies takes its unanswered calls with it, each rejected; the next call starts another.
 */
export class StoreClient<Calls extends CallTable> {
  readonly #entry: URL
  readonly #settings: StoreSettings
  readonly #pending = new Map<number, Pending>()
  #outbox: Call<Calls>[] = []
  #starting: Promise<void> | undefined
  /** Only once it is ready. */
  #thread: Worker | undefined
  #lastId = 0
  #closing: Promise<void> | undefined

  constructor(entry: URL, settings: StoreSettings) {
    this.#entry = entry
    this.#settings = settings
  }

  /** @throws BrainError `storage_unavailable` with the reason why the store cannot be opened. */
  start(): Promise<void> {
    this.#starting ??= this.#spawn()
    return this.#starting
  }

  /** @throws BrainError what the store answered, or `storage_unavailable` when there is no thread to ask. */
  call<Op extends keyof Calls>(op: Op, request: Calls[Op]['request']): Promise<Calls[Op]['reply']> {
    if (this.#closing !== undefined) return Promise.reject(unavailable('it is closed'))
    const id = ++this.#lastId
    return new Promise<Calls[Op]['reply']>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject })
      // At the end of this turn of the event loop: what many requests ask for leaves with one message and one wake.
      if (this.#outbox.length === 0) setImmediate(() => this.#flush())
      this.#outbox.push({ id, op, request })
    })
  }

  /** Answers what was called before, then ends the thread. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#flush()
    await this.#starting?.catch(() => undefined)
    const thread = this.#thread
    if (thread === undefined) return
    const ended = new Promise((resolve) => thread.once('exit', resolve))
    post<Calls>(thread, 'close')
    await ended
  }

  /** Until the thread is ready calls stay where they are: being ready flushes them, failing to start rejects them. */
  #flush(): void {
    if (this.#outbox.length === 0) return
    if (this.#thread === undefined) {
      this.start().catch(() => undefined)
      return
    }
    post<Calls>(this.#thread, this.#outbox)
    this.#outbox = []
  }

  #spawn(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const thread = new Worker(this.#entry, { env: threadEnvironment(), stdin: false, workerData: this.#settings })
    let cause = 'its thread ended'
    thread.on('message', (message: FromThread) => {
      switch (message.type) {
        case 'ready':
          this.#thread = thread
          resolve()
          return this.#flush()
        case 'refused':
          cause = message.message
          return undefined
        case 'replies':
          return this.#settle(message.replies)
        default:
          return message satisfies never
      }
    })
    thread.on('error', (error) => {
      cause = `its thread failed: ${messageOf(error)}`
    })
    thread.once('exit', () => {
      this.#thread = undefined
      this.#starting = undefined
      reject(unavailable(cause))
      this.#rejectAll(cause)
    })
    return promise
  }

  #settle(replies: readonly Reply[]): void {
    for (const reply of replies) {
      const pending = this.#pending.get(reply.id)
      this.#pending.delete(reply.id)
      if (reply.ok) pending?.resolve(reply.value)
      else pending?.reject(new BrainError(reply.code, reply.message))
    }
  }

  #rejectAll(cause: string): void {
    const pending = [...this.#pending.values()]
    this.#pending.clear()
    this.#outbox = []
    for (const call of pending) call.reject(unavailable(cause))
  }
}

const unavailable = (reason: string): BrainError =>
  new BrainError('storage_unavailable', `Cannot use the journal: ${reason}`)

const post = <Calls extends CallTable>(thread: Worker, message: ToThread<Calls>): void => thread.postMessage(message)
