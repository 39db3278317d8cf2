import { NotUtf8, textLines } from '../../../kernel/text-lines.ts'

/** Thrown by {@link serverSentEvents}; what it means is the caller's to say. */
export class StreamFault extends Error {
  readonly fault: 'frame_too_large' | 'not_utf8'

  constructor(fault: StreamFault['fault'], options?: ErrorOptions) {
    super(fault, options)
    this.fault = fault
  }
}

/** How large one event may be. Events may repeat what was asked and what was answered before, as a last one does. */
export type FrameBound = {
  /** Of what is new; 0 = no bound. */
  readonly maxBytes: number
  readonly requestBytes: number
  /** How much of the earlier events an event may repeat. */
  readonly maxRepeatedBytes: number
}

/**
 * The `data` of each event of a stream, in any dialect of line ends. Text is decoded across chunks and must be UTF-8.
 * An event that has no blank line after it counts when the stream ends in order.
 *
 * @throws StreamFault
 */
export async function* serverSentEvents(body: AsyncIterable<Buffer>, bound: FrameBound): AsyncGenerator<string> {
  const frame = new Frame(bound)
  try {
    for await (const line of textLines(body, (piece) => frame.charge(piece))) {
      const data = frame.take(line)
      if (data !== undefined) yield data
    }
  } catch (cause) {
    throw cause instanceof NotUtf8 ? new StreamFault('not_utf8', { cause }) : cause
  }
  const data = frame.take('')
  if (data !== undefined) yield data
}

/** The event that is being read, and how large it may become. */
class Frame {
  readonly #bound: FrameBound
  #bytes = 0
  #earlierBytes = 0
  #data: string[] = []

  constructor(bound: FrameBound) {
    this.#bound = bound
  }

  /** Counts text before it is kept. */
  charge(text: string): void {
    const { maxBytes, requestBytes, maxRepeatedBytes } = this.#bound
    if (maxBytes === 0) return
    this.#bytes += Buffer.byteLength(text)
    const repeated = requestBytes + Math.min(this.#earlierBytes, maxRepeatedBytes)
    if (this.#bytes > maxBytes + repeated) throw new StreamFault('frame_too_large')
  }

  /** @returns the event's data when `line` ends it. */
  take(line: string): string | undefined {
    if (line === '') {
      const data = this.#data
      this.#data = []
      this.#earlierBytes += this.#bytes
      this.#bytes = 0
      return data.length === 0 ? undefined : data.join('\n')
    }
    if (line.startsWith('data:')) this.#data.push(line.slice(line.startsWith('data: ') ? 6 : 5))
    return undefined
  }
}
