import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Json, JsonObject } from '../kernel/json.ts'
import type { Message } from '../contract/message.ts'
import type { ToolOutput } from '../contract/outcome.ts'
import { BrainError, messageOf } from '../kernel/errors.ts'
import { ApiClient } from './api/api-client.ts'
import { readEvents, type EventRecord } from './api/event-stream.ts'
import type { Environment } from './environment.ts'
import { printable, printableLines } from './printable.ts'
import { type Outputs, standardOutputs } from './tool/command-outputs.ts'
import { parseDuration } from './tool/duration.ts'
import { EXIT_CODES } from './tool/exit-codes.ts'
import { jsonArgument } from './tool/json-argument.ts'

export type ServerFlags = { readonly url: string; readonly json?: boolean }

/** Sessions of a running server, on the command line: one request each, and what came of it. */
export class SessionCommands {
  readonly #api: ApiClient
  readonly #isJson: boolean
  readonly #outputs: Outputs

  constructor(env: Environment, { url, json = false }: ServerFlags, outputs: Outputs = standardOutputs) {
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
      throw new BrainError(
        'invalid_request',
        `Cannot use --url ${JSON.stringify(url)}: it must begin with http:// or https://`,
      )
    this.#api = new ApiClient(url, { token: env['BRAIN_API_TOKEN'] })
    this.#isJson = json
    this.#outputs = outputs
  }

  /** @param body body of `POST /v1/sessions`: JSON, `@FILE` or `-` */
  async create(body: string): Promise<void> {
    const summary = await this.#api.post<{ session_id: string }>(
      '/v1/sessions',
      await jsonArgument(body, 'the session'),
    )
    this.#say(summary, () => [summary.session_id])
  }

  async list(): Promise<void> {
    const answer = await this.#api.get<{ sessions: { session_id: string; status: string; last_sequence: number }[] }>(
      '/v1/sessions',
    )
    this.#say(answer, () =>
      answer.sessions.map(({ session_id: id, status, last_sequence: last }) => `${id} ${status} ${last}`),
    )
  }

  /** Waits for the turn to end and prints what the model said last. */
  async send(session: string, message: string): Promise<void> {
    const path = `/v1/sessions/${session}`
    const summary = await this.#api.post<JsonObject>(`${path}/messages`, { input: { message } })
    if (this.#isJson) return this.#outputs.out(JSON.stringify(summary))
    const { messages } = await this.#api.get<{ messages: Message[] }>(`${path}/transcript`)
    for (const line of printableLines(lastWords(messages))) this.#outputs.out(line)
  }

  /** @param after the sequence after which records are shown */
  async events(session: string, { after, follow }: { after: number; follow: boolean }): Promise<void> {
    if (follow) {
      for await (const record of readEvents(await this.#api.events(session, after))) this.#record(record)
      return
    }
    for (let cursor = after; ;) {
      const page = await this.#api.get<{ events: EventRecord[]; next_cursor: number }>(
        `/v1/sessions/${session}/events?after=${cursor}`,
      )
      for (const record of page.events) this.#record(record)
      if (page.events.length === 0) return
      cursor = page.next_cursor
    }
  }

  /** @returns the exit code: {@link EXIT_CODES} */
  async call(session: string, tool: string, flags: { input?: string; deadline?: string }): Promise<number> {
    const input: Json = flags.input === undefined ? {} : await jsonArgument(flags.input, '--input')
    const body = {
      input,
      ...(flags.deadline === undefined ? {} : { deadline_ms: parseDuration(flags.deadline, '--deadline') }),
    }
    const path = `/v1/sessions/${session}/tools/${encodeURIComponent(tool)}/calls?wait=finished`
    const answer = await this.#api.post<{ outcome: ToolOutput; results: { output: Json }[] }>(path, body)
    this.#say(answer as unknown as Json, () => [
      ...answer.results.map(({ output }) => `result ${printable(JSON.stringify(output))}`),
      printable(JSON.stringify(answer.outcome)),
    ])
    return EXIT_CODES[answer.outcome.status]
  }

  async end(session: string): Promise<void> {
    const summary = await this.#api.post<{ status: string }>(`/v1/sessions/${session}/end`, {})
    this.#say(summary, () => [summary.status])
  }

  async listFiles(session: string, environment: string, prefix: string): Promise<void> {
    for (let after = ''; ;) {
      const query = new URLSearchParams({ prefix, after }).toString()
      const { files } = await this.#api.get<{ files: { path: string; size: number }[] }>(
        `${filesOf(session, environment)}?${query}`,
      )
      for (const file of files) this.#say(file, () => [`${file.size} ${printable(file.path)}`])
      const last = files.at(-1)
      if (last === undefined) return
      after = last.path
    }
  }

  /** Writes the bytes of a file to standard output, as they are. */
  async getFile(session: string, environment: string, path: string): Promise<void> {
    const body = await this.#api.bytes(`${filesOf(session, environment)}/${encodePath(path)}`)
    await pipeline(Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]), process.stdout, { end: false })
  }

  /** @param source a file of the user's, or `-` for standard input */
  async putFile(
    session: string,
    environment: string,
    { path, source }: { path: string; source: string },
  ): Promise<void> {
    const bytes = source === '-' ? process.stdin : await openFile(source)
    const stored = await this.#api.put<{ size: number }>(`${filesOf(session, environment)}/${encodePath(path)}`, bytes)
    this.#say({ path, size: stored.size }, () => [`${stored.size} ${printable(path)}`])
  }

  #say(answer: Json, lines: () => readonly string[]): void {
    if (this.#isJson) this.#outputs.out(JSON.stringify(answer))
    else for (const line of lines()) this.#outputs.out(line)
  }

  #record(record: EventRecord): void {
    const { sequence, event_type: type, data } = record
    this.#outputs.out(
      this.#isJson
        ? JSON.stringify(record)
        : `${String(sequence).padStart(4)} ${printable(type)} ${printable(JSON.stringify(data))}`,
    )
  }
}

async function openFile(path: string): Promise<Readable> {
  const file = await open(path, 'r').catch((cause: unknown) => {
    throw new BrainError('invalid_request', `Cannot read ${JSON.stringify(path)}: ${messageOf(cause)}`, { cause })
  })
  return file.createReadStream()
}

const filesOf = (session: string, environment: string): string =>
  `/v1/sessions/${session}/environments/${encodeURIComponent(environment)}/files`

const encodePath = (path: string): string => path.split('/').map(encodeURIComponent).join('/')

/** The text of the last thing that the model said. */
function lastWords(messages: readonly Message[]): string {
  const last = messages.findLast(({ role }) => role === 'assistant')
  const blocks = last === undefined ? [] : last.content
  return blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
}
