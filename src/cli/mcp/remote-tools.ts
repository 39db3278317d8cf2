import { isCallToolResult, isSpecType, type CallToolResult, type Tool } from '@modelcontextprotocol/server'
import { FIXED_SENTENCES } from '../../contract/outcome.ts'
import { BrainError } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { McpCall, OfferedTools } from '../../mcp/offered-tools.ts'
import { ENVIRONMENT_META, TRACE_META } from '../../mcp/to-mcp-tool.ts'
import { AnswerLost, type McpEndpoint } from './mcp-endpoint.ts'

/** The tools of a session of a running server. */
export class RemoteTools implements OfferedTools {
  readonly #endpoint: McpEndpoint
  readonly #cancelling = new Set<Promise<unknown>>()

  constructor(endpoint: McpEndpoint) {
    this.#endpoint = endpoint
  }

  async list(): Promise<readonly Tool[]> {
    const request = { id: this.#endpoint.nextId(), method: 'tools/list', params: {} }
    const answer = await this.#endpoint.request(request).catch((error: unknown) => {
      throw error instanceof AnswerLost ? otherForm(`tools (${error.message})`, error) : error
    })
    if (!isSpecType.ListToolsResult(answer)) throw otherForm('tools')
    return answer.tools
  }

  async call(call: McpCall): Promise<{ readonly result: CallToolResult }> {
    const { name, arguments: input, signal } = call
    const id = this.#endpoint.nextId()
    const meta = {
      ...(call.onProgress === undefined ? {} : { progressToken: id }),
      ...(call.environment === undefined ? {} : { [ENVIRONMENT_META]: call.environment }),
      ...(call.traceparent === undefined ? {} : { [TRACE_META]: call.traceparent }),
    }
    const cancel = (): void => this.#cancel(id)
    if (signal.aborted) throw new BrainError('cancelled', `Cannot call tool "${name}": it was cancelled before`)
    signal.addEventListener('abort', cancel, { once: true })
    try {
      const params = { name, arguments: input, _meta: meta }
      const answer = await this.#endpoint.request({ id, method: 'tools/call', params }, (message) =>
        tell(message, call),
      )
      if (!isCallToolResult(answer)) throw otherForm('a result')
      return { result: answer }
    } catch (error) {
      if (error instanceof AnswerLost) return { result: lost(error) }
      throw error
    } finally {
      signal.removeEventListener('abort', cancel)
    }
  }

  /** Resolves when the server was told of everything that was cancelled. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#cancelling)
  }

  #cancel(requestId: number): void {
    const telling = this.#endpoint.notify('notifications/cancelled', { requestId }).catch(() => undefined)
    this.#cancelling.add(telling)
    void telling.finally(() => this.#cancelling.delete(telling))
  }
}

function tell(message: JsonObject, { onProgress }: McpCall): void {
  if (!isSpecType.ProgressNotification(message)) return
  if (message.params.message !== undefined) onProgress?.(message.params.message)
}

const otherForm = (what: string, cause?: unknown): BrainError =>
  new BrainError('executor_failed', `Cannot read ${what}: is the url that of a server of this version?`, { cause })

/** Never sent again: the call may have been made. */
const lost = (error: AnswerLost): CallToolResult => ({
  content: [{ type: 'text', text: `unknown: ${FIXED_SENTENCES.unknown} The answer was lost: ${error.message}` }],
  isError: true,
})
