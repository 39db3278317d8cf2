import { Agent, type ClientRequest, type IncomingMessage, request as httpRequest, type RequestOptions } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { CallFailure } from './failures.ts'
import { codeOf, openConnection, type Target } from './open-connection.ts'

/** How long a connection waits for its next call. Services close idle ones too, many after five seconds. */
const IDLE_MS = 4000

/** Connections that wait, of one origin. */
const MOST_IDLE = 64

export type Sending = {
  readonly options: RequestOptions
  readonly body: string
  /** Gives the exchange up, and its connection with it, until the answer was read to its end. */
  readonly signal: AbortSignal
  /** Called right before the first byte is written: from here on the service may do its work. */
  readonly onSending: () => void
}

/** Connections to services, kept between calls, each origin's apart. */
export class Connections {
  readonly #idle = new Map<string, Set<Connection>>()

  /**
   * Sends one request, once, and waits for the head of its answer. A kept connection that turns out dead before anything
   * was written to it is replaced; one that dies later is not, since nobody can tell what arrived.
   *
   * @throws CallFailure
   */
  async send(target: Target, sending: Sending): Promise<IncomingMessage> {
    const idle = this.#idleOf(target)
    for (;;) {
      const kept = [...idle].at(-1)
      if (kept === undefined) break
      idle.delete(kept)
      const response = await kept.send(sending)
      if (response !== undefined) return response
    }
    const socket = await openConnection(target, sending.signal)
    const response = await new Connection(socket, idle).send(sending)
    if (response === undefined) throw new CallFailure('reset', 'its connection was closed before anything was sent')
    return response
  }

  /** Closes the connections that wait. */
  close(): void {
    for (const idle of this.#idle.values()) for (const connection of idle) connection.destroy()
    this.#idle.clear()
  }

  #idleOf({ url, proxy }: Target): Set<Connection> {
    const key = `${url.origin} ${proxy?.url.origin ?? ''}`
    const idle = this.#idle.get(key) ?? new Set()
    this.#idle.set(key, idle)
    return idle
  }
}

/** One connection: an agent of Node's that has this socket and never makes another. */
class Connection extends Agent {
  readonly #socket: Socket
  readonly #idle: Set<Connection>
  #wasUsed = false

  constructor(socket: Socket, idle: Set<Connection>) {
    super({ keepAlive: true, timeout: IDLE_MS })
    this.#socket = socket
    this.#idle = idle
    socket.once('close', () => idle.delete(this))
  }

  override createConnection(): Socket {
    return this.#socket
  }

  /** Also says no when the service has announced that it closes soon. */
  override keepSocketAlive(socket: Duplex): boolean {
    // Typed as if it answered nothing, although its answer decides.
    const keeps: unknown = super.keepSocketAlive(socket)
    if (keeps !== true || this.#idle.size >= MOST_IDLE) return false
    this.#idle.add(this)
    return true
  }

  /** @returns undefined when the connection was closed before anything was written */
  async send({ options, body, signal, onSending }: Sending): Promise<IncomingMessage | undefined> {
    if (this.#wasUsed && !(await this.#isFresh())) return undefined
    this.#wasUsed = true
    const request = httpRequest({ ...options, agent: this })
    const giveUp = (): void => void request.destroy()
    signal.addEventListener('abort', giveUp, { once: true })
    // Also when it is given up: a request that has its answer emits this when that was read to its end.
    request.once('close', () => signal.removeEventListener('abort', giveUp))
    const answer = answerOf(request)
    // The request has its socket after this, and no event of the socket can have come meanwhile.
    await new Promise<void>((resolve) => process.nextTick(resolve))
    if (signal.aborted || request.destroyed || !this.#socket.writable) {
      request.destroy()
      return undefined
    }
    onSending()
    request.end(body)
    return answer
  }

  /**
   * Lets whatever the system knows of a kept connection come in, while Node still takes every byte on it for the end of
   * it: one that was closed meanwhile is not written to, and what a service says unasked answers nothing.
   */
  async #isFresh(): Promise<boolean> {
    // The first may come before the next poll for events, the second comes after it.
    await turn()
    await turn()
    return !this.#socket.destroyed
  }
}

function answerOf(request: ClientRequest): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  request.once('response', resolve)
  request.once('upgrade', (_response, socket) => {
    socket.destroy()
    reject(new CallFailure('fault', 'its service switches to another protocol'))
  })
  // Errors that come after the answer are told by its body.
  request.on('error', (cause) => reject(toFailure(cause)))
  promise.catch(() => undefined)
  return promise
}

/** What a broken connection, or what is no HTTP, comes to. */
export function toFailure(cause: unknown): CallFailure {
  if (cause instanceof CallFailure) return cause
  const code = codeOf(cause)
  return code.startsWith(' (HPE_')
    ? new CallFailure('fault', `it is no HTTP that can be read${code}`, { cause })
    : new CallFailure('reset', `the connection broke${code}`, { cause })
}
