import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'

export type Asked = { readonly path: string; readonly headers: IncomingMessage['headers']; readonly body: any }

/** How the fake answers one request. */
export type Reply = (response: ServerResponse, asked: Asked) => void | Promise<void>

/** A local HTTP server in the place of a paid API: answers each request with the next reply, the last one for ever. */
export class ModelServer implements AsyncDisposable {
  readonly #server = createServer((request, response) => void this.#answer(request, response))
  readonly asked: Asked[] = []
  /** Connections that the client ended before the reply was complete. */
  aborted = 0
  #replies: readonly Reply[] = []
  #next = 0

  static async open(): Promise<ModelServer> {
    const fake = new ModelServer()
    fake.#server.listen(0, '127.0.0.1')
    await once(fake.#server, 'listening')
    return fake
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`
  }

  /** What it says from now on. */
  says(...replies: readonly Reply[]): void {
    this.#replies = replies
    this.#next = 0
    this.asked.length = 0
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += String(chunk)
    const asked = { path: request.url ?? '', headers: request.headers, body: JSON.parse(text) }
    this.asked.push(asked)
    response.once('close', () => (this.aborted += response.writableFinished ? 0 : 1))
    const reply = this.#replies[Math.min(this.#next++, this.#replies.length - 1)]
    await reply?.(response, asked)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

const EVENT_STREAM = { 'content-type': 'text/event-stream' }

/** A stream of events, complete: `data:` lines only, or named events as Anthropic sends them. */
export const stream =
  (events: readonly unknown[], { named = false, type = 'text/event-stream' } = {}): Reply =>
  (response) => {
    response.writeHead(200, { 'content-type': type })
    for (const event of events) {
      const name = named ? `event: ${(event as { type: string }).type}\n` : ''
      response.write(`${name}data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`)
    }
    response.end()
  }

/** These bytes as a stream of events, each piece a write of its own. */
export const pieces =
  (...chunks: readonly (string | Uint8Array)[]): Reply =>
  async (response) => {
    response.writeHead(200, EVENT_STREAM)
    for (const chunk of chunks) {
      response.write(chunk)
      // A turn of the event loop, so that each one travels alone.
      await new Promise((resolve) => setImmediate(resolve))
    }
    response.end()
  }

/** Some events, and then the connection is cut. */
export const cutAfter =
  (...events: readonly unknown[]): Reply =>
  (response) => {
    response.writeHead(200, EVENT_STREAM)
    const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
    response.write(text, () => setImmediate(() => response.destroy()))
  }

/** Some events, and then nothing for ever. */
export const hangAfter =
  (...events: readonly unknown[]): Reply =>
  (response) => {
    response.writeHead(200, EVENT_STREAM)
    response.flushHeaders()
    for (const event of events) response.write(`data: ${JSON.stringify(event)}\n\n`)
  }

export const refusal =
  (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Reply =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }

type Call = { readonly id?: string; readonly name: string; readonly arguments?: string }

/** A whole answer in the smallest form of contract 7.4: no ids, no announcements, no usage. */
export const responsesAnswer = (text: string, calls: readonly Call[] = []): readonly unknown[] => [
  ...(text === ''
    ? []
    : [
        { type: 'response.output_text.delta', output_index: 0, delta: text },
        {
          type: 'response.output_item.done',
          output_index: 0,
          item: { type: 'message', content: [{ type: 'output_text', text }] },
        },
      ]),
  ...calls.map((call, index) => ({
    type: 'response.output_item.done',
    output_index: index + (text === '' ? 0 : 1),
    item: { type: 'function_call', call_id: call.id, name: call.name, arguments: call.arguments },
  })),
  { type: 'response.completed', response: { output: [] } },
]

type ContentBlock = Readonly<Record<string, unknown>> & { readonly type: string }

/** A whole answer of Anthropic's Messages: each block with its deltas, usage at both ends. */
export function messagesAnswer(
  blocks: readonly { readonly block: ContentBlock; readonly deltas?: readonly ContentBlock[] }[],
  stop = 'end_turn',
): readonly unknown[] {
  return [
    {
      type: 'message_start',
      message: { id: 'msg_1', type: 'message', role: 'assistant', content: [], usage: { input_tokens: 11 } },
    },
    { type: 'ping' },
    ...blocks.flatMap(({ block, deltas = [] }, index) => [
      { type: 'content_block_start', index, content_block: block },
      ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: 7 } },
    { type: 'message_stop' },
  ]
}

export const textBlock = (...parts: readonly string[]) => ({
  block: { type: 'text', text: '' },
  deltas: parts.map((text) => ({ type: 'text_delta', text })),
})

export const toolBlock = (id: string, name: string, ...parts: readonly string[]) => ({
  block: { type: 'tool_use', id, name, input: {} },
  deltas: parts.map((part) => ({ type: 'input_json_delta', partial_json: part })),
})
