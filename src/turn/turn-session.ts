import type { Logger } from '../kernel/logger.ts'
import type { Limits } from '../contract/limits.ts'
import type { SessionConfiguration } from '../contract/session-request.ts'
import type { SessionState } from '../journal/session-state.ts'
import type { CallingSession, Dispatcher } from '../dispatch/dispatcher.ts'
import type { Agentloop } from './agentloop.ts'
import type { ModelCaller } from './model-caller.ts'

/** What a turn needs of its session. `state` follows the journal record by record. */
export type TurnSession = CallingSession & {
  readonly configuration: SessionConfiguration
  readonly state: SessionState
  readonly dispatcher: Dispatcher
  readonly models: ModelCaller
  readonly loop: Agentloop
  readonly limits: Limits
  readonly logger: Logger
  /** Ends every call that is open or on its way. */
  interruptCalls(reason: 'cancelled'): Promise<void>
  /** Settles when interruptions that were asked for are on record and have stopped the turn, or could not be. */
  readonly interrupting: Promise<unknown> | undefined
}
