import { extname } from 'node:path'
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { BrainError, messageOf } from '../../kernel/errors.ts'
import type { FromSchemaThread, SchemaCheck } from './schema-protocol.ts'

export const CHECK_LIMIT_MS = 250
const MAX_KNOWN_SCHEMAS = 256
const MAX_HEAP_MIB = 256

/** What is asked of a lane; `settle` gets the fault, or undefined when there is none. */
export type Job = {
  readonly digest: string
  readonly schema: string
  readonly value: string | undefined
  readonly settle: (fault: string | undefined) => void
  readonly fail: (error: BrainError) => void
}

type Thread = { readonly worker: Worker; readonly port: MessagePort; ready: boolean }

// The compiler rewrites import specifiers but not URLs: the thread takes the extension of this file.
const entry = new URL(`./schema-thread${extname(import.meta.filename)}`, import.meta.url)

/**
 * One schema thread and what waits for it. Checks run one after the other, so the first unanswered one is the one whose
 * time runs. A check that takes too long is answered by killing its thread; the others begin again on the next.
 */
export class SchemaLane {
  readonly #onCostly: (digest: string) => void
  /** Unanswered jobs, in the order in which the thread has them. */
  readonly #jobs = new Map<number, Job>()
  /** Digests whose schemas the thread has, longest unused first. */
  readonly #known = new Set<string>()
  readonly #ending = new Set<Promise<unknown>>()
  #thread: Thread | undefined
  #lastId = 0
  #headSince = 0
  #timer: NodeJS.Timeout | undefined

  /** `onCostly` hears which schema has just cost a thread its life. */
  constructor(onCostly: (digest: string) => void) {
    this.#onCostly = onCostly
  }

  start(): void {
    this.#thread ??= this.#spawn()
  }

  add(job: Job): void {
    const id = ++this.#lastId
    this.#jobs.set(id, job)
    this.start()
    if (this.#thread?.ready !== true) return
    this.#post(this.#thread, id, job)
    if (this.#jobs.size === 1) this.#startClock()
  }

  /** Takes the unanswered jobs of a schema out of this lane, to be run elsewhere. Only between two threads. */
  withdraw(digest: string): readonly Job[] {
    const found = [...this.#jobs].filter(([, job]) => job.digest === digest)
    for (const [id] of found) this.#jobs.delete(id)
    return found.map(([, job]) => job)
  }

  async close(): Promise<void> {
    this.#endThread()
    this.#failAll('the checker is closed')
    await Promise.all(this.#ending)
  }

  #spawn(): Thread {
    const { port1: port, port2 } = new MessageChannel()
    const worker = new Worker(entry, {
      env: {},
      stdin: false,
      workerData: port2,
      transferList: [port2],
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
    })
    const thread: Thread = { worker, port, ready: false }
    let cause = 'its thread ended'
    port.on('message', (message: FromSchemaThread) => this.#receive(thread, message))
    worker.on('error', (error) => {
      cause = messageOf(error)
    })
    worker.once('exit', () => this.#exited(thread, cause))
    return thread
  }

  #receive(thread: Thread, message: FromSchemaThread): void {
    if (thread !== this.#thread) return
    if (message.type === 'ready') {
      thread.ready = true
      for (const [id, job] of this.#jobs) this.#post(thread, id, job)
      this.#startClock()
      return
    }
    const job = this.#jobs.get(message.id)
    this.#jobs.delete(message.id)
    this.#headSince = performance.now()
    job?.settle(message.fault)
  }

  #post(thread: Thread, id: number, { digest, schema, value }: Job): void {
    const isKnown = this.#known.delete(digest)
    this.#known.add(digest)
    const [oldest] = this.#known
    const drop = this.#known.size > MAX_KNOWN_SCHEMAS ? oldest : undefined
    if (drop !== undefined) this.#known.delete(drop)
    const check: SchemaCheck = {
      id,
      digest,
      ...(!isKnown && { schema }),
      ...(drop !== undefined && { drop }),
      ...(value !== undefined && { value }),
    }
    thread.port.postMessage(check)
  }

  #startClock(): void {
    this.#headSince = performance.now()
    if (this.#jobs.size > 0) this.#timer ??= setTimeout(() => this.#look(), CHECK_LIMIT_MS)
  }

  /** One timer watches whatever is first: it looks when the time of the job that it was set for would be over. */
  #look(): void {
    this.#timer = undefined
    const thread = this.#thread
    if (thread?.ready !== true) return
    // Verdicts that are here already count, however late this thread comes to read them.
    for (let next; (next = receiveMessageOnPort(thread.port)) !== undefined;) this.#receive(thread, next.message)
    if (this.#jobs.size === 0) return
    const left = this.#headSince + CHECK_LIMIT_MS - performance.now()
    if (left > 0) this.#timer = setTimeout(() => this.#look(), left)
    else this.#giveUp(`the check took more than ${CHECK_LIMIT_MS} ms`)
  }

  #exited(thread: Thread, cause: string): void {
    thread.port.close()
    if (thread !== this.#thread) return
    if (thread.ready) return this.#giveUp(`the check ended its thread: ${cause}`)
    this.#endThread()
    this.#failAll(cause)
  }

  /** Ends the thread together with the check that it is at; what waits begins again on another. */
  #giveUp(reason: string): void {
    this.#endThread()
    const [head] = this.#jobs
    if (head === undefined) return
    const [id, job] = head
    this.#jobs.delete(id)
    this.#onCostly(job.digest)
    job.settle(`the schema is too costly: ${reason}`)
    if (this.#jobs.size > 0) this.start()
  }

  #endThread(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#known.clear()
    const thread = this.#thread
    this.#thread = undefined
    if (thread === undefined) return
    thread.port.close()
    const ended = thread.worker.terminate().finally(() => this.#ending.delete(ended))
    this.#ending.add(ended)
  }

  #failAll(reason: string): void {
    const jobs = [...this.#jobs.values()]
    this.#jobs.clear()
    for (const { fail } of jobs) fail(new BrainError('internal', `Cannot check a schema: ${reason}`))
  }
}
