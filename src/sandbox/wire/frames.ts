// Frames of every channel of this room: u32 length (little endian, counts what follows), u8 type, body.
// No channel carries JSON of a less trusted peer: bodies are bytes that only their last reader understands.

/** Frames from a box are at most this long unless an output limit was raised above it (design 2). */
export const BOX_FRAME_BYTES = 1024 * 1024
/** Frames between server and supervisor, which trust each other; bounds a defect of ours. */
export const TRUSTED_FRAME_BYTES = 160 * 1024 * 1024

const LENGTH = 4
/** Bytes in front of a body. */
export const FRAME_HEAD = 5

export type Part = Uint8Array | string

const sizeOf = (part: Part): number => (typeof part === 'string' ? Buffer.byteLength(part) : part.length)

/** One frame of the parts in a row; strings are written as UTF-8. */
export function frame(type: number, ...parts: readonly Part[]): Buffer {
  let size = FRAME_HEAD
  for (const part of parts) size += sizeOf(part)
  const out = Buffer.allocUnsafe(size)
  out.writeUInt32LE(size - LENGTH, 0)
  out[LENGTH] = type
  let at = FRAME_HEAD
  for (const part of parts) {
    if (typeof part === 'string') at += out.write(part, at)
    else {
      out.set(part, at)
      at += part.length
    }
  }
  return out
}

/** The head of a frame whose body of `size` bytes is written after it, unjoined. */
export function frameHead(type: number, size: number): Buffer {
  const head = Buffer.allocUnsafe(FRAME_HEAD)
  head.writeUInt32LE(size + 1, 0)
  head[LENGTH] = type
  return head
}

export type FrameEvents = {
  /**
   * @param body valid until this returns; copy what is kept.
   * @param last whether nothing of the stream follows it so far.
   */
  readonly onFrame: (type: number, body: Buffer, last: boolean) => void
  /** The stream is not one of frames; nothing is read of it any more. */
  readonly onBroken: (reason: string) => void
}

/** Cuts a byte stream into frames of at most `cap` bytes. */
export class FrameReader {
  /** Longest frame that is taken from here on. */
  cap: number
  readonly #events: FrameEvents
  #rest: Buffer = Buffer.alloc(0)
  #held = 0
  #closed = false

  constructor(cap: number, events: FrameEvents) {
    this.cap = cap
    this.#events = events
  }

  /** Ignores everything from now on. */
  close(): void {
    this.#closed = true
    this.#rest = Buffer.alloc(0)
    this.#held = 0
  }

  push(chunk: Buffer): void {
    if (this.#closed) return
    const data = this.#held === 0 ? chunk : this.#join(chunk)
    let at = 0
    while (!this.#closed && data.length - at >= FRAME_HEAD) {
      const size = data.readUInt32LE(at)
      if (size < 1 || size > this.cap) return this.#break(`a frame of ${size} bytes`)
      const end = at + LENGTH + size
      if (data.length < end) break
      this.#events.onFrame(data[at + LENGTH] ?? 0, data.subarray(at + FRAME_HEAD, end), end === data.length)
      at = end
    }
    if (!this.#closed) this.#keep(data, at)
  }

  #join(chunk: Buffer): Buffer {
    const size = this.#held + chunk.length
    if (this.#rest.length < size) {
      const grown = Buffer.allocUnsafe(Math.max(size, this.#rest.length * 2))
      this.#rest.copy(grown, 0, 0, this.#held)
      this.#rest = grown
    }
    chunk.copy(this.#rest, this.#held)
    return this.#rest.subarray(0, size)
  }

  #keep(data: Buffer, at: number): void {
    const left = data.length - at
    if (left > 0 && (at > 0 || this.#held === 0)) {
      if (this.#rest.length < left) this.#rest = Buffer.allocUnsafe(Math.max(left, 64 * 1024))
      data.copy(this.#rest, 0, at)
    } else if (left === 0 && this.#rest.length > BOX_FRAME_BYTES) this.#rest = Buffer.alloc(0)
    this.#held = left
  }

  #break(reason: string): void {
    this.close()
    this.#events.onBroken(reason)
  }
}
