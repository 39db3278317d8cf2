import type { SessionId, TenantId } from '../kernel/ids.ts'
import type { HostFrame, HostRegistration, HostUpdate } from '../contract/host-protocol.ts'

/** Applications that run tools of their own (contract 4): what their routes need. */
export interface ApplicationHosts {
  /** @throws BrainError `overloaded` at BRAIN_MAX_HOSTS, `storage_unavailable` */
  register(tenant: TenantId): Promise<HostRegistration>
  /** @throws BrainError `not_found` for an unknown host, `unauthorized` for another token than its own */
  open(id: string, token: string): ApplicationHost
}

/** Names an open call: its session and the sequence of its `tool_call_started`. */
export type HostCallName = { readonly session: string; readonly sequence: number }

/**
 * One application. What it asks of a call is answered after the commit.
 * @throws BrainError `conflict` when the call is not pending here, `overloaded` when too much is asked of it at once,
 *   and what the service itself refuses; ToolFailure of a model call.
 */
export interface ApplicationHost {
  readonly tenant: TenantId
  /** Its commands from now on; displaces the stream before. Ends when that happens, at a suspension and on abort. */
  connect(signal: AbortSignal): AsyncIterable<HostFrame>
  /**
   * Closes the stream if nothing goes on. @returns whether it did.
   * @throws BrainError `conflict` when another connection, or none, is the current one
   */
  suspend(connection: number): boolean
  /** @returns the sequence of the last record that was committed. */
  update(call: HostCallName, update: HostUpdate): Promise<number>
  emit(call: HostCallName, eventType: string, payloadText: string): Promise<number>
  /** @returns text of the ModelResult. */
  model(call: HostCallName, requestText: string): Promise<string>
  /** @returns text of a view, a list or a method's output. */
  environments(call: HostCallName, requestText: string): Promise<string>
}

/** What sessions tell about the hosts that their tools are placed in. */
export interface SessionHosts {
  /**
   * Keeps hosts registered for a session, durably.
   * @throws BrainError `invalid_request` when one is not registered, `storage_unavailable`
   */
  bind(session: SessionId, hosts: readonly string[]): Promise<void>
  /** Never fails: what could not be written is put right at the next start. */
  release(session: SessionId): Promise<void>
  /** Told whenever it changes: whether a turn runs, a tool is open or a wake is pending (contract A20). */
  activity(session: SessionId, isActive: boolean): void
}
