import { extname } from 'node:path'
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { BrainError, messageOf } from '../../kernel/errors.ts'
import { threadEnvironment } from '../../kernel/thread-environment.ts'
import type { FromSchemaThread, SchemaCheck } from './schema-protocol.ts'

const MAX_KNOWN_SCHEMAS = 256
/** What compiling a large schema may take besides, once per thread, on a busy machine. */
const COMPILE_MS_PER_KIB = 5
/** A check's time is what it computes: on a busy machine it may last longer, up to so many times as long. */
const MAX_STRETCH = 4
/** Reaching its heap's limit would not end the thread but abort the process: no check has the time to get there. */
const MAX_HEAP_MIB = 2048

/** What is asked of a lane; `settle` gets the fault, or undefined when there is none. */
export type Job = {
  readonly digest: string
  readonly schema: string
  readonly value: string | undefined
  /** Time that the check may take once it is its turn, when its schema is compiled already. */
  readonly limitMs: number
  readonly settle: (fault: string | undefined) => void
  readonly fail: (error: BrainError) => void
}

type Waiting = { readonly job: Job; limitMs: number }
type Thread = {
  readonly worker: Worker
  readonly port: MessagePort
  ready: boolean
  /** What it had computed when its present check began, at most a few milliseconds less. */
  cpuMs: number
}

// The compiler rewrites import specifiers but not URLs: the thread takes the extension of this file.
const entry = new URL(`./schema-thread${extname(import.meta.filename)}`, import.meta.url)

/**
 * One schema thread and what waits for it. Checks run one after the other, so the first unanswered one is the one whose
 * time runs. A check that takes too long is answered by killing its thread; the others begin again on the next.
 */
export class SchemaLane {
  readonly #onCostly: (digest: string) => void
  /** Unanswered jobs, in the order in which the thread has them. */
  readonly #jobs = new Map<number, Waiting>()
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
    const waiting: Waiting = { job, limitMs: job.limitMs }
    this.#jobs.set(id, waiting)
    this.start()
    if (this.#thread?.ready !== true) return
    this.#post(this.#thread, id, waiting)
    if (this.#jobs.size === 1) this.#startClock()
  }

  /** Takes the unanswered jobs of a schema out of this lane, to be run elsewhere. Only between two threads. */
  withdraw(digest: string): readonly Job[] {
    const found = [...this.#jobs].filter(([, { job }]) => job.digest === digest)
    for (const [id] of found) this.#jobs.delete(id)
    return found.map(([, { job }]) => job)
  }

  async close(): Promise<void> {
    this.#endThread()
    this.#failAll('the checker is closed')
    await Promise.all(this.#ending)
  }

  #spawn(): Thread {
    const { port1: port, port2 } = new MessageChannel()
    const worker = new Worker(entry, {
      env: threadEnvironment(),
      stdin: false,
      workerData: port2,
      transferList: [port2],
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
    })
    const thread: Thread = { worker, port, ready: false, cpuMs: 0 }
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
    thread.cpuMs = message.cpuMs ?? thread.cpuMs
    if (message.type === 'ready') {
      thread.ready = true
      for (const [id, waiting] of this.#jobs) this.#post(thread, id, waiting)
      this.#startClock()
      return
    }
    const waiting = this.#jobs.get(message.id)
    this.#jobs.delete(message.id)
    this.#headSince = performance.now()
    waiting?.job.settle(message.fault)
  }

  #post(thread: Thread, id: number, waiting: Waiting): void {
    const { digest, schema, value, limitMs } = waiting.job
    const isKnown = this.#known.delete(digest)
    waiting.limitMs = isKnown ? limitMs : limitMs + Math.floor(schema.length / 1024) * COMPILE_MS_PER_KIB
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
    this.#timer ??= this.#timerFor(this.#head)
  }

  get #head(): Waiting | undefined {
    return this.#jobs.values().next().value
  }

  #timerFor(head: Waiting | undefined): NodeJS.Timeout | undefined {
    return head && setTimeout(() => this.#look(), this.#headSince + head.limitMs - performance.now())
  }

  /** One timer watches whatever is first: it looks when the time of the job that it was set for would be over. */
  #look(): void {
    this.#timer = undefined
    const thread = this.#thread
    if (thread?.ready !== true) return
    this.#drain(thread)
    const head = this.#head
    const lasted = performance.now() - this.#headSince
    if (head === undefined || lasted < head.limitMs) this.#timer = this.#timerFor(head)
    else if (lasted < head.limitMs * MAX_STRETCH) void this.#measure(thread, head)
    else this.#giveUp(head)
  }

  /** Verdicts that are here already count, however late this thread comes to read them. */
  #drain(thread: Thread): void {
    for (let next; (next = receiveMessageOnPort(thread.port)) !== undefined;) this.#receive(thread, next.message)
  }

  async #measure(thread: Thread, head: Waiting): Promise<void> {
    // For a thread that does not answer, being in the middle of something that cannot be interrupted.
    const longest = this.#headSince + head.limitMs * MAX_STRETCH - performance.now()
    this.#timer = setTimeout(() => this.#look(), longest)
    const usage = await thread.worker.cpuUsage().catch(() => undefined)
    if (thread !== this.#thread || usage === undefined) return
    this.#drain(thread)
    clearTimeout(this.#timer)
    const left = head.limitMs - ((usage.user + usage.system) / 1000 - thread.cpuMs)
    if (head !== this.#head) this.#timer = this.#timerFor(this.#head)
    else if (left <= 0) this.#giveUp(head)
    else this.#timer = setTimeout(() => this.#look(), Math.min(left, longest))
  }

  #exited(thread: Thread, cause: string): void {
    thread.port.close()
    if (thread !== this.#thread) return
    if (thread.ready) return this.#endHead(`the check ended its thread: ${cause}`)
    this.#endThread()
    this.#failAll(cause)
  }

  #giveUp(head: Waiting): void {
    this.#endHead(`the check took more than ${head.limitMs} ms`)
  }

  /** Ends the thread together with the check that it is at; what waits begins again on another. */
  #endHead(reason: string): void {
    this.#endThread()
    const [head] = this.#jobs
    if (head === undefined) return
    const [id, { job }] = head
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
    const waiting = [...this.#jobs.values()]
    this.#jobs.clear()
    for (const { job } of waiting) job.fail(new BrainError('internal', `Cannot check a schema: ${reason}`))
  }
}
