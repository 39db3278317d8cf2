import { timingSafeEqual } from 'node:crypto'
import { BrainError } from '../../kernel/errors.ts'
import type { Json } from '../../kernel/json.ts'
import type { HostId, SessionId, TenantId } from '../../kernel/ids.ts'
import type { HostCommand, HostFrame, HostUpdate } from '../../contract/host-protocol.ts'
import { describeLimit, type Limits } from '../../contract/limits.ts'
import type { BoundCall, CallServices, Receipt, RunningCall } from '../../dispatch/tool-binding.ts'
import { CommandStream, type Outgoing } from './command-stream.ts'
import { HostCall } from './host-call.ts'
import type { KeptHost } from './host-store.ts'

/** How long an application has to hear of a cancellation (contract 4.1). */
const CANCEL_MS = 5000

type CallName = { readonly session: string; readonly sequence: number }
const keyOf = ({ session, sequence }: CallName): string => `${session}/${sequence}`

const failed = (code: string, message: string): Receipt => ({
  type: 'failure',
  error: { code, message, retryable: false },
})

const notConnected = (): Receipt =>
  failed('executor_failed', 'Cannot call the tool: its host is not connected; nothing was sent')

/** One application: its connection, the commands that wait for it, the calls that it has. */
export class Host {
  readonly id: HostId
  readonly tenant: TenantId
  readonly tokenDigest: Buffer
  readonly #limits: Limits
  /** Told when what keeps it registered may have changed. */
  readonly #onChange: () => void
  readonly #sessions: Set<SessionId>
  readonly #active = new Set<SessionId>()
  readonly #calls = new Map<string, HostCall>()
  #queue: Outgoing[] = []
  #connections = 0
  #stream: CommandStream | undefined

  constructor(kept: KeptHost, limits: Limits, onChange: () => void) {
    this.id = kept.id
    this.tenant = kept.tenant
    this.tokenDigest = kept.tokenDigest
    this.#limits = limits
    this.#onChange = onChange
    this.#sessions = new Set(kept.sessions)
  }

  get kept(): KeptHost {
    const { id, tenant, tokenDigest } = this
    return { id, tenant, tokenDigest, sessions: this.sessions }
  }

  get sessions(): readonly SessionId[] {
    return [...this.#sessions]
  }

  /** @param digest SHA-256 of the token that was given. */
  isOwn(digest: Buffer): boolean {
    return timingSafeEqual(digest, this.tokenDigest)
  }

  get isConnected(): boolean {
    return this.#stream !== undefined
  }

  /** Whether it stays registered however long it takes. */
  get isHeld(): boolean {
    return this.isConnected || this.#sessions.size > 0
  }

  get isIdle(): boolean {
    return this.#queue.length === 0 && this.#calls.size === 0 && this.#active.size === 0
  }

  bind(session: SessionId): void {
    this.#sessions.add(session)
    this.#onChange()
  }

  release(session: SessionId): void {
    this.#sessions.delete(session)
    this.#active.delete(session)
    this.#changed()
  }

  setActive(session: SessionId, isActive: boolean): void {
    if (isActive) this.#active.add(session)
    else this.#active.delete(session)
    this.#changed()
  }

  #changed(): void {
    this.#stream?.wake()
    this.#onChange()
  }

  /** The command that waits longest. */
  take(): Outgoing | undefined {
    return this.#queue.shift()
  }

  connect(signal: AbortSignal): AsyncIterable<HostFrame> {
    const stream = new CommandStream(++this.#connections, this)
    const displaced = this.#stream
    this.#stream = stream
    if (displaced !== undefined) this.#closed(displaced)
    if (signal.aborted) this.#disconnected(stream)
    else signal.addEventListener('abort', () => this.#disconnected(stream), { once: true })
    this.#onChange()
    return stream
  }

  #disconnected(stream: CommandStream): void {
    if (this.#stream === stream) {
      this.#stream = undefined
      for (const { onLost } of this.#queue.splice(0)) onLost()
    }
    this.#closed(stream)
    this.#onChange()
  }

  /** What a stream has taken may have arrived or not, and is not sent again. */
  #closed(stream: CommandStream): void {
    stream.close()
    for (const call of this.#calls.values())
      if (call.connection === stream.connection)
        call.lose('The connection of the host was lost after the call was sent')
  }

  suspend(connection: number): boolean {
    const stream = this.#stream
    if (stream?.connection !== connection)
      throw new BrainError('conflict', `Cannot suspend connection ${connection}: it is not the current one`)
    if (!this.isIdle) return false
    this.#disconnected(stream)
    return true
  }

  update(call: CallName, update: HostUpdate): Promise<number> {
    return this.#callOf(call).serveInOrder((services) => {
      const text = update.outcome === undefined ? undefined : JSON.stringify(update.outcome)
      switch (update.type) {
        case 'result':
          return services.emitResult(text ?? 'null')
        case 'returned':
          return services.returned(text, 'refuse')
        case 'finish':
          return services.finish(text, 'refuse')
        default:
          return update satisfies never
      }
    })
  }

  emit(call: CallName, eventType: string, payloadText: string): Promise<number> {
    return this.#callOf(call).serveInOrder((services) => services.emit(eventType, payloadText))
  }

  model(call: CallName, requestText: string): Promise<string> {
    return this.#callOf(call).serve((services) => services.model(requestText))
  }

  environments(call: CallName, requestText: string): Promise<string> {
    return this.#callOf(call).serve((services) => services.environments(requestText))
  }

  #callOf(name: CallName): HostCall {
    const call = this.#calls.get(keyOf(name))
    if (call !== undefined) return call
    throw new BrainError(
      'conflict',
      `Cannot use call ${name.sequence} of session "${name.session}": it is not pending on this host`,
    )
  }

  /** Gives a call to the application, if it is there to take it. */
  start(call: BoundCall, name: string, services: CallServices): RunningCall {
    if (!this.isConnected) return over(notConnected())
    if (this.#waiting('invoke_tool') >= this.#limits.hostCommands) {
      const most = describeLimit('hostCommands', this.#limits)
      return over(failed('overloaded', `Cannot call the tool: ${most} wait for its host already`))
    }
    const key = keyOf(call)
    const pending = new HostCall(services, () => {
      this.#calls.delete(key)
      this.#changed()
    })
    this.#calls.set(key, pending)
    const outgoing: Outgoing = {
      command: invocationOf(call, name),
      onSent: (connection) => pending.sentOn(connection),
      onLost: () => pending.end(notConnected()),
    }
    this.#send(outgoing)
    return {
      receipt: pending.receipt,
      cancel: (reason, sequence) => {
        const { connection } = pending
        this.#queue = this.#queue.filter((one) => one !== outgoing)
        pending.end({ type: 'stopped', reason })
        return connection === undefined ? Promise.resolve() : this.#cancel(call, sequence)
      },
    }
  }

  #waiting(type: HostCommand['operation']['type']): number {
    return this.#queue.filter(({ command }) => command.operation.type === type).length
  }

  #send(outgoing: Outgoing): void {
    this.#queue.push(outgoing)
    this.#changed()
  }

  /** @returns when a stream has taken it. */
  #cancel({ session, place, sequence: target }: BoundCall, sequence: number): Promise<void> {
    const told = Promise.withResolvers<void>()
    const lost = (): void => told.reject(new Error('the host cannot be told'))
    if (!this.isConnected || this.#waiting('cancel_tool') >= this.#limits.hostCommands) lost()
    else
      this.#send({
        command: {
          session_id: session,
          ...whereOf(place),
          sequence,
          deadline_at_ms: Date.now() + CANCEL_MS,
          operation: { type: 'cancel_tool', target_sequence: target },
        },
        onSent: () => told.resolve(),
        onLost: lost,
      })
    return told.promise
  }
}

/** A call that was not sent. */
export const over = (receipt: Receipt): RunningCall => ({
  receipt: Promise.resolve(receipt),
  cancel: () => Promise.resolve(),
})

export const hostIsNotConnected = (): RunningCall => over(notConnected())

const whereOf = ({ reference, template }: BoundCall['place']): { environment: string; template?: string } => ({
  environment: reference.name,
  ...(template === reference.name ? {} : { template }),
})

const invocationOf = (call: BoundCall, name: string): HostCommand => ({
  session_id: call.session,
  ...whereOf(call.place),
  sequence: call.sequence,
  ...(call.deadlineAtMs === 0 ? {} : { deadline_at_ms: call.deadlineAtMs }),
  operation: { type: 'invoke_tool', name, input: JSON.parse(call.input) as Json },
})
