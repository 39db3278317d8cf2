// The published entry `@aexhq/brain/agentloop`, for loops that are built into components.
import { clip, messageOf } from '../../kernel/errors.ts'
import { isIdentifier } from '../../kernel/ids.ts'
import type { Json } from '../../kernel/json.ts'
import { jsonOf } from '../json-value.ts'
import type { AgentloopHandler } from './agentloop-context.ts'
import { openContext, type GuestTurnInput } from './open-context.ts'
import { settledResult } from './settled-result.ts'

export type {
  ActivationTool,
  AgentloopContext,
  AgentloopHandler,
  EventPage,
  LoopCall,
  LoopEnvironments,
  LoopMemory,
  ToolReturn,
} from './agentloop-context.ts'
export type { GuestTurnInput } from './open-context.ts'
export type { WireEvent as JournalEvent } from '../client/session-event.ts'
export { BrainError } from '../brain-error.ts'
export type { Json } from '../../kernel/json.ts'
export type { Block, Message, ModelRequest, ModelResult, ToolUseBlock, UserInput } from '../../contract/message.ts'
export type { Outcome, ToolOutput, ToolResult } from '../../contract/outcome.ts'

/** What a turn fails with, as the world `brain:agentloop` has it. */
type TurnError = { readonly code: string; readonly message: string; readonly retryable: boolean }

/**
 * Makes a handler the export of the world `brain:agentloop`: `export const turn = defineAgentloop((ctx) => { … })`. It
 * loads in a component build only, since it imports the host of that world, and whose promises it replaces: the build lowers
 * async functions to generators, as QuickJS would not go on with its own.
 *
 * @throws TypeError for what is no function
 */
export function defineAgentloop(handler: AgentloopHandler): (input: GuestTurnInput) => { resultJson?: string } {
  if (typeof handler !== 'function') throw new TypeError('Cannot define an agentloop: its handler must be a function')
  return (input) => {
    try {
      const result = settledResult(() => handler(openContext(input)))
      if (result === undefined) return {}
      return { resultJson: JSON.stringify(jsonOf(result, 'result')) }
    } catch (error) {
      // oxlint-disable-next-line typescript/only-throw-error -- what is thrown is the record of the world
      throw turnError(error)
    }
  }
}

function turnError(error: unknown): TurnError {
  const { code, retryable } = (typeof error === 'object' && error !== null ? error : {}) as { [member: string]: Json }
  return {
    code: typeof code === 'string' && isIdentifier(code) ? code : 'agentloop_failed',
    message: clip(messageOf(error)),
    retryable: retryable === true,
  }
}
