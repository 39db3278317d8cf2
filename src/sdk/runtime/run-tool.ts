import type { Json } from '../../kernel/json.ts'
import { Execution } from '../host/execution.ts'
import type { LoadedTool } from './load-tool.ts'
import { toolServices, type ToolEnd, type ToolService } from './tool-service.ts'

/** One call of a tool, as contract 9.4 writes it. */
export type ToolCall = {
  readonly input: Json
  readonly sessionId: string
  /** The environment that runs it. */
  readonly environment: string
  /** Of its `tool_call_started`. */
  readonly sequence: number
  /** Milliseconds since the epoch; absent = none. */
  readonly deadline_at_ms?: number
}

/**
 * Runs one call of a tool in this process, as an application runs its own: input, results and output are checked, results
 * and events leave in the order in which they were asked for, and the first reason why it ends stays. It is over when the
 * call has an end and its function has returned, or when it is interrupted: by its deadline or by `signal`.
 *
 * @param service asks Brain what the tool asks of its context
 * @returns how it ended. Never rejects.
 */
export async function runTool(
  { executable }: LoadedTool,
  call: ToolCall,
  service: ToolService,
  signal?: AbortSignal,
): Promise<ToolEnd> {
  let end: ToolEnd = { type: 'returned' }
  const services = toolServices(service, (failure) => (end = failure))
  const over = Promise.withResolvers<void>()
  const { input, sessionId: session_id, sequence, deadline_at_ms } = call
  const command = { session_id, sequence, input, ...(deadline_at_ms !== undefined && { deadline_at_ms }) }
  const execution = new Execution(command, executable, services, () => over.resolve())
  const cancel = (): void => execution.interrupt('cancelled')
  signal?.addEventListener('abort', cancel, { once: true })
  if (signal?.aborted === true) cancel()
  else await execution.run()
  await over.promise
  signal?.removeEventListener('abort', cancel)
  return end
}
