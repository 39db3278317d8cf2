import type { Tool } from '@modelcontextprotocol/server'
import type { SessionId, TenantId } from '../kernel/ids.ts'
import { BrainError, clip } from '../kernel/errors.ts'
import type { DirectCalls } from '../session/direct-calls.ts'
import type { Happening } from '../session/call-watcher.ts'
import type { McpCall, OfferedTools } from './offered-tools.ts'
import { toCallToolResult } from './to-call-tool-result.ts'
import { shownOutputSchema, toMcpTool } from './to-mcp-tool.ts'

/** A line of progress holds at most this many characters of what the tool showed; the journal has all of its events. */
const MAX_PROGRESS_LENGTH = 4096

/** The tools of one session of this server, called as an application calls them (contract A11). */
export class SessionTools implements OfferedTools {
  readonly #calls: DirectCalls
  readonly #tenant: TenantId
  readonly #id: SessionId
  readonly #traceparent: string | undefined

  /** @param traceparent of the request, for calls of services (contract A16); one that the call itself names counts more */
  constructor(calls: DirectCalls, tenant: TenantId, id: SessionId, traceparent?: string) {
    this.#calls = calls
    this.#tenant = tenant
    this.#id = id
    this.#traceparent = traceparent
  }

  async list(): Promise<readonly Tool[]> {
    const tools = await this.#calls.tools(this.#tenant, this.#id)
    return tools.flatMap((tool) => toMcpTool(tool) ?? [])
  }

  async call(call: McpCall): ReturnType<OfferedTools['call']> {
    const { name, arguments: input, environment, signal, onProgress, traceparent = this.#traceparent } = call
    const tools = await this.#calls.tools(this.#tenant, this.#id)
    const tool = tools.find((candidate) => candidate.name === name)
    if (tool === undefined) throw new BrainError('not_found', `Cannot find tool "${name}" in session "${this.#id}"`)
    const place = environment === undefined ? {} : { environment }
    const request = { tool: name, input, traceparent, ...place }
    const attended = await this.#calls.attend(this.#tenant, this.#id, request, (happening) =>
      onProgress?.(lineOf(happening)),
    )
    const interrupt = (): void => void attended.interrupt()
    if (signal.aborted) interrupt()
    else signal.addEventListener('abort', interrupt, { once: true })
    const outputSchema = shownOutputSchema(tool)
    try {
      const result = toCallToolResult(await attended.answer, outputSchema)
      return { result, ...(outputSchema === undefined ? {} : { outputSchema }) }
    } finally {
      signal.removeEventListener('abort', interrupt)
    }
  }
}

function lineOf({ event_type: type, data }: Happening): string {
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  return clip(type === 'tool.progress' ? text : `${type}: ${text}`, MAX_PROGRESS_LENGTH)
}
