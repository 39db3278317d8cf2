import { join } from 'node:path'
import type { Message } from '../../contract/message.ts'
import type { SandboxLevel } from '../../sandbox/sandbox.ts'
import { ApiClient } from '../api/api-client.ts'
import { readEvents } from '../api/event-stream.ts'
import { sessionRequest } from './session-request.ts'
import { printable } from '../printable.ts'
import type { Progress } from '../progress.ts'
import { FILES, MESSAGE, placedTools, scriptFor } from './story.ts'
import { Timeline, TIMELINE_HEAD } from './timeline.ts'
import { pythonCache, pythonTool, rustTool } from './tools.ts'
import { transcriptLines } from './transcript.ts'

export type DemoStage = {
  readonly url: string
  /** For what the demo keeps while it runs. */
  readonly directory: string
  /** Holds the Python compiler and what it built; default: in the checkout. */
  readonly pythonCache: string | undefined
  readonly withPython: boolean
  readonly progress: Progress
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}

/** Thrown where the demo cannot be shown, with words for whoever started it. */
export class DemoFailure extends Error {
  override readonly name = 'DemoFailure'
}

/**
 * Shows one turn from outside, as any client could: upload, session, files, message, events, transcript.
 * @throws DemoFailure when the machine runs no boxes, or the turn does not end well
 */
export async function runDemo(stage: DemoStage): Promise<void> {
  const { progress, say, signal } = stage
  const api = new ApiClient(stage.url, { signal })
  await requireLevel(api)
  const reportTool = stage.withPython ? await buildReportTool(stage) : undefined

  progress.step('Uploading inspect, a tool in Rust')
  const inspect = await api.admit(await rustTool('inspect'))
  progress.done(`component ${inspect.slice(0, 12)}…`)
  let csvReport: string | undefined
  if (reportTool !== undefined) {
    progress.step('Uploading csv_report, a tool in Python')
    csvReport = await api.admit(reportTool)
    progress.done(`component ${csvReport.slice(0, 12)}…`)
  }

  progress.step('Creating a session with it and putting files into its workspace')
  const tools = placedTools({ inspect, ...(csvReport === undefined ? {} : { csvReport }) })
  const request = sessionRequest(tools, scriptFor(csvReport !== undefined))
  const { session_id: session } = await api.post<{ session_id: string }>('/v1/sessions', request)
  for (const [path, content] of Object.entries(FILES)) await api.putFile(session, path, content)
  progress.done(`${session}, ${Object.keys(FILES).length} files`)

  await followTurn(api, session, say)
  const { messages } = await api.get<{ messages: Message[] }>(`/v1/sessions/${session}/transcript`)
  say('\nTranscript\n')
  for (const line of transcriptLines(messages)) say(line)
}

/** A machine without a box level is told so, and what would give it one (design 5). */
async function requireLevel(api: ApiClient): Promise<void> {
  const { sandbox } = await api.get<{ sandbox: { level: SandboxLevel } }>('/health/ready?verbose')
  const { name, remarks } = sandbox.level
  if (name !== 'none') return
  throw new DemoFailure(
    `Cannot show the demo: this machine offers no sandbox for untrusted tools: ${remarks.join('; ')}\n` +
      'It needs Linux 5.13 or newer on x86-64 or aarch64 with landlock (look for "landlock" in /sys/kernel/security/lsm) and seccomp.\n' +
      'Without them run it in a virtual machine or on another host; containers inherit the kernel of their host',
  )
}

async function buildReportTool({
  progress,
  directory,
  pythonCache: cache,
  signal,
}: DemoStage): Promise<Buffer | undefined> {
  progress.step('Building csv_report, a tool in Python (the first time takes about 15 s)')
  const tool = await pythonTool('csv_report', {
    cacheDirectory: cache ?? (await pythonCache(directory)),
    onProgress: (line) => progress.detail(line),
    signal,
  })
  if ('bytes' in tool) {
    progress.done(`${(tool.bytes.length / 1e6).toFixed(1)} MB`)
    return tool.bytes
  }
  progress.done(`left out: ${printable(tool.reason)}`)
  return undefined
}

/** Sends the message and prints every record of the session as it is committed, until the turn has ended. */
async function followTurn(api: ApiClient, session: string, say: (line: string) => void): Promise<void> {
  say(`\nTimeline of the session, live from its event stream\n\n${TIMELINE_HEAD}`)
  const events = readEvents(await api.events(session))
  const timeline = new Timeline()
  for await (const record of events) {
    say(timeline.line(record))
    // Only now: the stream shows the records before the turn too.
    if (record.event_type === 'session_creation_ended')
      await api.post(`/v1/sessions/${session}/messages`, { input: { message: MESSAGE } }, { prefer: 'respond-async' })
    if (record.event_type === 'turn_ended') return
    if (record.event_type === 'turn_failed')
      throw new DemoFailure(`The turn failed: ${printable(JSON.stringify(record.data))}`)
  }
  throw new DemoFailure('The event stream ended before the turn did')
}

/** Where a demo keeps its server's data and log. */
export const demoPaths = (directory: string): { readonly data: string; readonly log: string } => ({
  data: join(directory, 'data'),
  log: join(directory, 'server.log'),
})
