import { boundedLines } from '../../kernel/bounded-lines.ts'
import type { Json } from '../../kernel/json.ts'
import {
  answerFrame,
  brainErrorOf,
  callFrame,
  frameText,
  MOST_FRAME_BYTES,
  readFrame,
  refusal,
} from './process-frames.ts'
import { runToolHandler, type ToolSource } from './run-tool-handler.ts'
import type { ToolEnd, ToolService } from './tool-service.ts'

export type ServedTool = {
  readonly toolSource: ToolSource
  /** Frames for this process; their end cancels the call. */
  readonly lines: AsyncIterable<Buffer>
  /** Takes a frame. */
  readonly write: (text: string) => void
  readonly signal: AbortSignal
}

/**
 * The process of one call (contract 9.4): reads the call, runs its tool, asks what the tool asks by frames.
 *
 * @returns how it ended, for the last frame, which is the caller's to write
 * @throws BrainError `invalid_request` for a line that is no frame, is too long, or answers nothing that was asked
 */
export async function serveTool({ toolSource, lines, write, signal }: ServedTool): Promise<ToolEnd> {
  const frames = boundedLines(lines, { lineBytes: MOST_FRAME_BYTES, refusal })
  const first = await frames.next()
  if (first.done === true) throw refusal(1, 'standard input ended before there was a call')
  const { deadline_at_ms, ...call } = readFrame(callFrame, first.value)
  const questions = new Questions(write)
  const stop = new AbortController()
  const cancel = (): void => stop.abort()
  signal.addEventListener('abort', cancel, { once: true })
  const hearing = (async () => {
    for await (const line of frames) questions.answer(line.number, readFrame(answerFrame, line))
  })().finally(cancel)
  const running = runToolHandler(
    toolSource,
    { ...call, ...(deadline_at_ms != null && { deadline_at_ms }), service: questions.ask },
    stop.signal,
  )
  // The end of standard input is told to the tool; what is wrong with it, to whoever started the process.
  return Promise.race([running, hearing.then(() => running)])
}

type Answer = ReturnType<typeof answerFrame.parse>

/** What was asked and is not answered yet. An execution asks for no more than some ten things at a time. */
class Questions {
  readonly #write: (text: string) => void
  readonly #open = new Map<number, PromiseWithResolvers<Json>>()
  #last = 0

  constructor(write: (text: string) => void) {
    this.#write = write
  }

  readonly ask: ToolService = async (method, input, signal) => {
    signal?.throwIfAborted()
    const id = ++this.#last
    const text = frameText({ type: 'service', id, method, input })
    const asked = Promise.withResolvers<Json>()
    this.#open.set(id, asked)
    // There is no way to take a question back: its answer finds nobody.
    signal?.addEventListener('abort', () => asked.reject(signal.reason as Error), { once: true })
    this.#write(text)
    return asked.promise
  }

  answer(line: number, frame: Answer): void {
    const asked = this.#open.get(frame.id)
    if (asked === undefined) throw refusal(line, `it answers ${frame.id}, which was not asked`)
    this.#open.delete(frame.id)
    if ('error' in frame) asked.reject(brainErrorOf(frame.error as Parameters<typeof brainErrorOf>[0]))
    else asked.resolve(frame.output)
  }
}
