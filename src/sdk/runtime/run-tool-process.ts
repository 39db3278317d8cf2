import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { boundedLines } from '../../kernel/bounded-lines.ts'
import { clip, messageOf } from '../../kernel/errors.ts'
import { setLongTimeout } from '../../kernel/long-timeout.ts'
import { BrainError } from '../brain-error.ts'
import { quietly } from '../quietly.ts'
import {
  frameText,
  MOST_FRAME_BYTES,
  processFrame,
  readFrame,
  refusal,
  serviceError,
  type AnswerFrame,
  type ServiceFrame,
} from './process-frames.ts'
import type { ToolFrame } from './run-tool-handler.ts'
import { failureOf, type ToolEnd, type ToolService } from './tool-service.ts'

/** How {@link runToolProcess} ends a process. */
export type ToolProcessOptions = {
  /** Cancels: the process gets SIGTERM. */
  readonly signal?: AbortSignal | undefined
  /**
   * Milliseconds that the process may take to its end before it is killed, from its deadline, from SIGTERM, or from its last
   * frame; default 6000.
   */
  readonly graceMs?: number
}

/** Our own runtime asks for less; who asks for more is answered that it is too much. */
const MOST_OPEN = 32
/** Questions, answers and refusals that the process has not read. A process that leaves more is given up. */
const MOST_UNREAD = 256
/** What a process has written is in its pipe when it is gone; what it started may hold the pipe open for ever. */
const DRAINING_MS = 1000

/**
 * Runs one call in a process that was started as `brain-tool-runtime`, with pipes as standard input and output: hands it
 * the call, answers what it asks, and sees it out. Its standard error is the caller's to read: a pipe that nobody reads
 * stops the process when it is full.
 *
 * @param frame the call, and the service that takes what the tool asks
 * @returns how it ended, when the process is gone. Where it did not say: `failure` with the code `timeout` after its
 * deadline, `cancelled` after `signal`, else `unknown`. Never rejects.
 */
export async function runToolProcess(
  child: ChildProcess,
  frame: ToolFrame,
  { signal, graceMs = 6000 }: ToolProcessOptions = {},
): Promise<ToolEnd> {
  const { service, ...call } = frame
  let failure: Error | undefined
  child.on('error', (error) => (failure = error))
  const gone = goneOf(child)
  const closed = new AbortController()
  let stopped: 'timeout' | 'cancelled' | undefined
  // The process hears its deadline itself and may tell more of it, unless its tool keeps it from that.
  const deadline = setDeadline(call.deadline_at_ms, () => {
    stopped ??= 'timeout'
    killAfter(child, graceMs)
  })
  const cancel = (): void => {
    stopped ??= 'cancelled'
    child.kill('SIGTERM')
    killAfter(child, graceMs)
  }
  signal?.addEventListener('abort', cancel, { once: true })
  if (signal?.aborted === true) cancel()
  const unsaid = (reason: string): ToolEnd => (stopped === undefined ? unknown(reason) : failureOf({ status: stopped }))
  try {
    if (child.stdin === null || child.stdout === null) throw new Error('it has no pipes as standard input and output')
    // A process that ends early is told of by its end.
    child.stdin.on('error', () => {})
    child.stdin.write(frameText(call))
    const end = await Promise.race([quietly(endOf(child, service, closed.signal)), drained(gone)])
    child.stdin.end()
    killAfter(child, graceMs)
    await gone
    return end ?? unsaid(`The process of the tool did not say how the call ended: ${failure?.message ?? exitOf(child)}`)
  } catch (error) {
    child.kill('SIGKILL')
    await gone
    return unsaid(`The process of the tool could not be followed: ${messageOf(error)}`)
  } finally {
    closed.abort()
    deadline?.clear()
    child.stdout?.destroy()
    signal?.removeEventListener('abort', cancel)
  }
}

const setDeadline = (at: number | undefined, ring: () => void) =>
  at === undefined ? undefined : setLongTimeout(ring, at - Date.now())

async function drained(gone: Promise<void>): Promise<undefined> {
  await gone
  await new Promise((resolve) => setTimeout(resolve, DRAINING_MS).unref())
}

/** Answers until there is an end. @returns undefined when the output ended without one */
async function endOf(child: ChildProcess, service: ToolService, closed: AbortSignal): Promise<ToolEnd | undefined> {
  let open = 0
  const answerTo = async ({ id, method, input }: ServiceFrame): Promise<string> => {
    try {
      if (open > MOST_OPEN) throw new BrainError(503, 'overloaded', 'Too much is asked at once', { retryable: true })
      return frameText({ id, output: (await service(method, input, closed)) ?? null } satisfies AnswerFrame)
    } catch (error) {
      return frameText({ id, error: serviceError(error) } satisfies AnswerFrame)
    }
  }
  const answer = async (asked: ServiceFrame): Promise<void> => {
    open++
    const text = await answerTo(asked)
    child.stdin?.write(text, () => open--)
  }
  for await (const line of boundedLines(child.stdout as AsyncIterable<Buffer>, {
    lineBytes: MOST_FRAME_BYTES,
    refusal,
  })) {
    const frame = readFrame(processFrame, line)
    if (frame.type !== 'service') return frame as ToolEnd
    void answer(frame)
    // Refusals may leave before it is judged whether anybody reads them.
    if (open > MOST_OPEN) await new Promise((resolve) => setImmediate(resolve))
    if (open > MOST_UNREAD) throw new Error('it asks and does not read what it is answered')
  }
  return undefined
}

const goneOf = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) await once(child, 'exit')
}

function killAfter(child: ChildProcess, ms: number): void {
  const timer = setTimeout(() => child.kill('SIGKILL'), ms)
  child.once('exit', () => clearTimeout(timer))
}

const exitOf = ({ exitCode, signalCode }: ChildProcess): string =>
  signalCode === null ? `its exit code is ${exitCode}` : `it was ended by ${signalCode}`

const unknown = (message: string): ToolEnd => ({
  type: 'failure',
  code: 'unknown',
  message: clip(message),
  retryable: false,
})
