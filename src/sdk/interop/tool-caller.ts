import { clip, messageOf } from '../../kernel/errors.ts'
import { parseJson, type Json } from '../../kernel/json.ts'
import type { SessionHandle } from '../client/session-handle.ts'
import { isPlacedTool, type PlacedTool } from '../declare/tool.ts'
import { refusal, reportOf, type CallReport } from './call-report.ts'

/** What the tools of a set are called through: a handle, or anything that calls like one. */
export type ToolSession = Pick<SessionHandle, 'call'>

/** How each call of a set is made. */
export type CallTerms = {
  /** Milliseconds that one call may take; the server's own limit holds as well. */
  readonly deadlineMs?: number
  /** `released`, the default, does not wait for a tool that goes on after it returned; `finished` does. */
  readonly wait?: 'released' | 'finished'
}

/** One call of a model. */
export type RunOptions = {
  /** Ends the waiting with its reason; the call goes on. */
  readonly signal?: AbortSignal
}

/** One tool with what takes an input of its rewritten schema back to its own. */
export type CallableTool = { readonly placed: PlacedTool; readonly toOwnInput: (input: Json) => Json }

const WHAT = 'Cannot offer tools'

/** Calls what a model asked for, and never rejects for what the model did wrong: it is told instead. */
export class ToolCaller {
  readonly #session: ToolSession
  readonly #terms: CallTerms
  readonly #tools: ReadonlyMap<string, CallableTool>

  constructor(session: ToolSession, tools: readonly CallableTool[], terms: CallTerms) {
    this.#session = session
    this.#terms = terms
    this.#tools = new Map(tools.map((tool) => [tool.placed.name, tool]))
  }

  /**
   * @param given the input, or its JSON text, where nothing stands for `{}` (cases D-29)
   * @throws BrainError when the server does not take the call, and the reason of the signal
   */
  async run(name: string, given: Json | undefined, { signal }: RunOptions = {}): Promise<CallReport> {
    const tool = this.#tools.get(name)
    if (tool === undefined) return refusal('unknown_tool', `There is no tool ${clip(JSON.stringify(name), 140)}`)
    const input = typeof given === 'string' ? parsed(name, given) : { value: given ?? {} }
    if ('message' in input) return refusal('invalid_input', input.message)
    const { env } = tool.placed
    const { deadlineMs, wait } = this.#terms
    const answer = await this.#session.call(name, tool.toOwnInput(input.value), {
      ...(env && { environment: env.name }),
      ...(deadlineMs !== undefined && { deadlineMs }),
      ...(wait && { wait }),
      ...(signal && { signal }),
    })
    return reportOf(answer)
  }
}

/** Numbers that a double would change are refused, as everywhere (cases D-17). */
function parsed(name: string, text: string): { readonly value: Json } | { readonly message: string } {
  if (text.trim() === '') return { value: {} }
  try {
    return { value: parseJson(text, `the arguments of the call of "${name}"`) }
  } catch (error) {
    return { message: messageOf(error) }
  }
}

/** @throws TypeError for what is no placed tool, and for two of one name */
export function checkTools(tools: readonly PlacedTool[]): void {
  if (!Array.isArray(tools) || !tools.every(isPlacedTool))
    throw new TypeError(`${WHAT}: give a list of placed tools, as sessions.create takes them: call the factory`)
  const names = tools.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined)
    throw new TypeError(`${WHAT}: there are two named "${twice}": give the one whose environment is to run it`)
}
