import { readSync, writeSync } from 'node:fs'
import { Socket } from 'node:net'

export type ChannelEvents = {
  /** @param bytes a shared buffer, valid until this returns. */
  readonly onBytes: (bytes: Buffer) => void
  /** The peer is gone, or the channel was closed here. Once. */
  readonly onClose?: () => void
}

/** All channels of a process are read on its one thread, one after another: they share a buffer. */
const shared = Buffer.allocUnsafeSlow(256 * 1024)

/**
 * One end of a stream socket that this process owns. Frames are written at once where the kernel has room: a wake and
 * a turn of the event loop less for every answer than through the stream machinery.
 */
export class Channel {
  /** Undefined where the descriptor is not ours to use: everything then goes through the stream. */
  readonly #fd: number | undefined
  readonly #socket: Socket
  #closed = false
  #soon: Buffer[] = []

  /** @param end a descriptor, from now on owned by the channel, or a socket that Node made */
  constructor(end: number | Socket, events: ChannelEvents) {
    const receive = (bytes: Buffer) => {
      if (!this.#closed) events.onBytes(bytes)
    }
    if (typeof end === 'number') {
      this.#fd = end
      const callback = (size: number) => {
        receive(shared.subarray(0, size))
        return true
      }
      this.#socket = new Socket({ fd: end, readable: true, writable: true, onread: { buffer: shared, callback } })
    } else {
      this.#socket = end
      end.on('data', receive)
    }
    this.#socket.on('error', () => {}) // 'close' follows, and says all that there is to know
    this.#socket.on('close', () => {
      this.#closed = true
      events.onClose?.()
    })
    this.#socket.resume()
  }

  /** Bytes that wait for the peer to read. */
  get backlog(): number {
    return this.#socket.writableLength
  }

  /** Once the socket is destroyed the number of its descriptor may belong to another file. */
  get #usable(): boolean {
    return !this.#closed && !this.#socket.destroyed
  }

  /** Reads what is there now, ahead of the event loop. @returns 0 when that is nothing */
  readNow(into: Buffer): number {
    if (!this.#usable || this.#fd === undefined) return 0
    try {
      return readSync(this.#fd, into, 0, into.length, null)
    } catch {
      return 0
    }
  }

  /**
   * Lets bytes leave with everything else of this turn of the event loop: one system call and one wake of the peer for
   * many frames. The caller gives the buffer away.
   */
  writeSoon(bytes: Buffer): void {
    if (!this.#usable) return
    if (this.#soon.length === 0) setImmediate(() => this.#flush())
    this.#soon.push(bytes)
  }

  #flush(): void {
    const [first, ...more] = this.#soon
    this.#soon = []
    if (first !== undefined) this.#send(more.length === 0 ? first : Buffer.concat([first, ...more]))
  }

  /** Queues bytes, or writes them at once. The caller gives the buffer away. After the close it does nothing. */
  write(bytes: Buffer): void {
    this.#flush()
    this.#send(bytes)
  }

  #send(bytes: Buffer): void {
    if (!this.#usable) return
    let written = 0
    if (this.#fd !== undefined && this.#socket.writableLength === 0) {
      try {
        written = writeSync(this.#fd, bytes)
      } catch {
        // Full, or gone: the stream waits for the one and reports the other.
      }
    }
    if (written < bytes.length) this.#socket.write(written === 0 ? bytes : bytes.subarray(written))
  }

  /** Resolves when everything written so far has left this process, or the channel is closed. */
  drained(): Promise<void> {
    this.#flush()
    if (!this.#usable || this.#socket.writableLength === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const done = () => {
        this.#socket.off('drain', done)
        this.#socket.off('close', done)
        resolve()
      }
      this.#socket.on('drain', done)
      this.#socket.on('close', done)
    })
  }

  close(): void {
    this.#closed = true
    this.#socket.destroy()
  }

  /** Keeps the process alive no longer. */
  unref(): void {
    this.#socket.unref()
  }
}
