import { NotUtf8, textLines } from '../../kernel/text-lines.ts'
import { CallFailure } from './failures.ts'

/** An event with all of its data; `name` is empty where the stream gave none. */
export type StreamEvent = { readonly name: string; readonly data: string }

/** How many bytes of data an event of a name may have. */
export type MostBytes = (name: string) => number

/** Longer than any line needs to be besides its data. */
const FIELD_BYTES = 64

/**
 * The events of a stream in any dialect of Server-Sent Events. A block without name and data is no event; neither is
 * what stands at the end without an empty line after it (WHATWG HTML 9.2.6).
 *
 * @param names of events that the reader knows, for the bound of a line whose event is not named yet
 * @throws CallFailure `fault`: what is too large, or no UTF-8
 */
export async function* streamEvents(
  body: AsyncIterable<Uint8Array>,
  names: readonly string[],
  mostBytes: MostBytes,
): AsyncGenerator<StreamEvent> {
  const mostOfAll = Math.max(...names.map(mostBytes))
  let lineBytes = 0
  const charge = (piece: string): void => {
    lineBytes += Buffer.byteLength(piece)
    if (lineBytes > mostOfAll + FIELD_BYTES)
      throw new CallFailure('fault', `its stream has a line of more than ${mostOfAll} bytes`)
  }
  const bounds = { names, mostOfAll, mostBytes }
  let event = new EventData(bounds)
  try {
    for await (const line of textLines(body, charge)) {
      lineBytes = 0
      if (line !== '') {
        event.take(line)
        continue
      }
      const whole = event.whole()
      event = new EventData(bounds)
      if (whole !== undefined) yield whole
    }
  } catch (cause) {
    throw cause instanceof NotUtf8 ? new CallFailure('fault', 'its stream is not valid UTF-8', { cause }) : cause
  }
}

type EventBounds = {
  readonly names: readonly string[]
  readonly mostOfAll: number
  readonly mostBytes: MostBytes
}

class EventData {
  readonly #bounds: EventBounds
  #name: string | undefined
  #bytes = 0
  readonly #data: string[] = []

  constructor(bounds: EventBounds) {
    this.#bounds = bounds
  }

  take(line: string): void {
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (field === 'event') this.#name = value
    else if (field === 'data') {
      this.#bytes += Buffer.byteLength(value) + (this.#data.length === 0 ? 0 : 1)
      this.#data.push(value)
    } else return
    this.#bound(this.#bounds.mostOfAll)
  }

  /** The event, once its end has come. */
  whole(): StreamEvent | undefined {
    if (this.#name === undefined && this.#data.length === 0) return undefined
    const name = this.#name ?? ''
    this.#bound(this.#bounds.mostBytes(name))
    return { name, data: this.#data.join('\n') }
  }

  #bound(most: number): void {
    if (this.#bytes <= most) return
    const name = this.#name !== undefined && this.#bounds.names.includes(this.#name) ? this.#name : undefined
    const event = name === undefined ? 'an event' : `event "${name}"`
    throw new CallFailure('fault', `${event} of its stream has more than ${most} bytes of data`)
  }
}
