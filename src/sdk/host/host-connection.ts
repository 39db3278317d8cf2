import { isJsonObject, type Json } from '../../kernel/json.ts'
import type { HostActivity, HostCommand, HostRegistration } from '../../contract/host-protocol.ts'
import { BrainError } from '../brain-error.ts'
import { eventFrames, type EventFrame } from '../client/event-frames.ts'
import type { Transport } from '../client/transport.ts'

/** Who a host is to the server: keep them to take its sessions up again after a restart. */
export type HostCredentials = { readonly hostId: string; readonly token: string }

export type HostConnectionOptions = {
  readonly transport: Transport
  readonly credentials: HostCredentials | undefined
  /** Milliseconds; 0 = the connection stays open. */
  readonly idleTimeoutMs: number
  readonly closed: AbortSignal
  readonly onCommand: (command: HostCommand) => void
  /** The connection is gone, and with it every call that came through it. */
  readonly onLost: () => void
  /** Whether calls are open. */
  readonly isBusy: () => boolean
}

const RECONNECT_MS = 100
const LONGEST_RECONNECT_MS = 1000
/** Answers after which trying again is no use. */
const FINAL = new Set([401, 403, 404])

/** One registration and one stream of commands, which is opened again whenever it ends. */
export class HostConnection {
  readonly #options: HostConnectionOptions
  #registration: Promise<HostCredentials> | undefined
  #opened: PromiseWithResolvers<void> | undefined
  #suspending: Promise<void> = Promise.resolve()
  #isSuspended = false
  #activity: HostActivity = { connection: 0, idle: false }
  #pins = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(options: HostConnectionOptions) {
    this.#options = options
    if (options.credentials !== undefined) this.#registration = Promise.resolve(options.credentials)
    options.closed.addEventListener('abort', () => clearTimeout(this.#timer), { once: true })
  }

  /** Registers, unless that was done before. A failure is not remembered. */
  credentials(): Promise<HostCredentials> {
    this.#registration ??= this.#register().catch((error: unknown) => {
      this.#registration = undefined
      throw error
    })
    return this.#registration
  }

  /** Does work while the stream is open, and keeps it from being suspended meanwhile. */
  async during<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#pins++
    clearTimeout(this.#timer)
    try {
      await this.#suspending
      await this.#open()
      return await work()
    } finally {
      this.#pins--
      this.rest()
    }
  }

  /** @throws BrainError */
  async post(route: string, body: object, signal?: AbortSignal): Promise<Json | undefined> {
    const { hostId, token } = await this.credentials()
    return this.#options.transport.json('POST', `/v1/hosts/${hostId}/${route}`, { body, token, signal })
  }

  /** Suspends the stream after a while, if there is nothing that it is open for. */
  rest(): void {
    const { idleTimeoutMs, closed } = this.#options
    clearTimeout(this.#timer)
    if (idleTimeoutMs === 0 || closed.aborted || !this.#isIdle()) return
    this.#timer = setTimeout(() => {
      if (this.#isIdle()) this.#suspending = this.#suspend().catch(() => {})
    }, idleTimeoutMs)
  }

  #isIdle(): boolean {
    return this.#opened !== undefined && this.#activity.idle && this.#pins === 0 && !this.#options.isBusy()
  }

  async #suspend(): Promise<void> {
    const { connection } = this.#activity
    const answer = await this.post('suspend', { connection }).catch((error: unknown) => {
      if (error instanceof BrainError) return undefined
      throw error
    })
    if (isJsonObject(answer) && answer['suspended'] === true) {
      this.#isSuspended = true
      this.#opened = undefined
    } else this.rest()
  }

  async #register(): Promise<HostCredentials> {
    const answer = await this.#options.transport.json('POST', '/v1/hosts')
    const { host_id: hostId, token } = answer as HostRegistration
    return Object.freeze({ hostId, token })
  }

  async #open(): Promise<void> {
    if (this.#opened === undefined) {
      this.#isSuspended = false
      this.#opened = newOpening()
      void this.#pump(this.#opened)
    }
    await this.#opened.promise
  }

  /** Follows the stream and opens it again, until it is suspended, the client closes or the server wants no more of it. */
  async #pump(first: PromiseWithResolvers<void>): Promise<void> {
    let opening = first
    let wait = RECONNECT_MS
    for (let round = 0; ; round++) {
      const error = await this.#follow(opening)
      // Calls of a newer connection are not lost with a suspended one.
      if (this.#opened === opening) this.#options.onLost()
      // The server may end what it suspends before it says so.
      await this.#suspending
      if (this.#opened !== opening) return
      const isFinal = error instanceof BrainError && FINAL.has(error.status)
      const wasOpen = this.#activity.connection > 0
      if (this.#options.closed.aborted || isFinal || (round === 0 && !wasOpen)) {
        opening.reject(error ?? this.#options.closed.reason)
        this.#opened = undefined
        // A host without sessions is forgotten after a while: the next session gets a new one.
        if (isFinal && this.#options.credentials === undefined) this.#registration = undefined
        return
      }
      opening.reject(error ?? new BrainError(0, 'executor_failed', 'The connection of the host has ended'))
      opening = this.#opened = newOpening()
      wait = wasOpen ? RECONNECT_MS : Math.min(wait * 2, LONGEST_RECONNECT_MS)
      await this.#pause(wait)
    }
  }

  /** @returns what ended the stream, if something did */
  async #follow(opening: PromiseWithResolvers<void>): Promise<unknown> {
    this.#activity = { connection: 0, idle: false }
    try {
      const { hostId, token } = await this.credentials()
      const { transport, closed } = this.#options
      const body = await transport.open(`/v1/hosts/${hostId}/commands`, { token, signal: closed })
      for await (const frame of eventFrames(body)) this.#take(frame, opening)
      return undefined
    } catch (error) {
      return error
    }
  }

  #take({ event, data }: EventFrame, opening: PromiseWithResolvers<void>): void {
    if (event === 'activity') {
      this.#activity = JSON.parse(data) as HostActivity
      opening.resolve()
      this.rest()
    } else if (event === 'command' && !this.#isSuspended) this.#options.onCommand(JSON.parse(data) as HostCommand)
  }

  #pause(ms: number): Promise<void> {
    const { closed } = this.#options
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        closed.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, ms)
      closed.addEventListener('abort', done, { once: true })
      if (closed.aborted) done()
    })
  }
}

function newOpening(): PromiseWithResolvers<void> {
  const opening = Promise.withResolvers<void>()
  opening.promise.catch(() => {})
  return opening
}
