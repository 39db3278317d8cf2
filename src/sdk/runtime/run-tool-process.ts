import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { boundedLines } from '../../kernel/bounded-lines.ts'
import { clip, messageOf } from '../../kernel/errors.ts'
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
import type { ToolEnd, ToolService } from './tool-service.ts'

/** How {@link runToolProcess} ends a process. */
export type ToolProcessOptions = {
  /** Cancels: the process gets SIGTERM. */
  readonly signal?: AbortSignal | undefined
  /** How long the process may take from SIGTERM, or from its last frame, to its end, before it is killed; default 6000. */
  readonly graceMs?: number
}

/** Our own runtime asks for less; who asks for more is answered that it is too much. */
const MOST_OPEN = 32

/**
 * Runs one call in a process that was started as `brain-tool-runtime`, with pipes as standard input and output: hands it
 * the call, answers what it asks, and sees it out. Its standard error is the caller's to read.
 *
 * @param frame the call, and the service that takes what the tool asks
 * @returns how it ended, when the process is gone; `failure` with the code `unknown` when it did not say. Never rejects.
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
  const cancel = (): void => {
    child.kill('SIGTERM')
    killAfter(child, graceMs)
  }
  signal?.addEventListener('abort', cancel, { once: true })
  if (signal?.aborted === true) cancel()
  try {
    if (child.stdin === null || child.stdout === null) throw new Error('it has no pipes as standard input and output')
    // A process that ends early is told of by its end.
    child.stdin.on('error', () => {})
    child.stdin.write(frameText(call))
    const end = await endOf(child, service, closed.signal)
    child.stdin.end()
    killAfter(child, graceMs)
    await gone
    return (
      end ?? unknown(`The process of the tool did not say how the call ended: ${failure?.message ?? exitOf(child)}`)
    )
  } catch (error) {
    child.kill('SIGKILL')
    await gone
    return unknown(`The process of the tool could not be followed: ${messageOf(error)}`)
  } finally {
    closed.abort()
    signal?.removeEventListener('abort', cancel)
  }
}

/** Answers until there is an end. @returns undefined when the output ended without one */
async function endOf(child: ChildProcess, service: ToolService, closed: AbortSignal): Promise<ToolEnd | undefined> {
  let open = 0
  const send = (answer: AnswerFrame): void => void child.stdin?.write(frameText(answer))
  const answer = async ({ id, method, input }: ServiceFrame): Promise<void> => {
    open++
    try {
      if (open > MOST_OPEN)
        throw Object.assign(new Error('Too much is asked at once'), { code: 'overloaded', status: 503 })
      send({ id, output: (await service(method, input, closed)) ?? null })
    } catch (error) {
      send({ id, error: serviceError(error) })
    } finally {
      open--
    }
  }
  for await (const line of boundedLines(child.stdout as AsyncIterable<Buffer>, {
    lineBytes: MOST_FRAME_BYTES,
    refusal,
  })) {
    const frame = readFrame(processFrame, line)
    if (frame.type !== 'service') return frame as ToolEnd
    void answer(frame)
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
