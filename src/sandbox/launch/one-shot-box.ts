import type { BoxedEvents, BoxedProcess } from './spawn-boxed.ts'

/** How a boxed program ended. All of it may be hostile. */
export type BoxEnd = {
  /** A signal or an exit code. */
  readonly how: string
  /** What it wrote to stdout and stderr, up to the bound. */
  readonly words: string
}

export type OneShotEvents = {
  /** Bytes of the program on fd 3; the buffer is valid until this returns. */
  readonly onBytes: (bytes: Buffer) => void
  /** It has ended, and nothing of it is left to be read on fd 3. Once, and not after {@link OneShotBox.close}. */
  readonly onEnd: (end: BoxEnd) => void
}

/** A program in a box that is started for one piece of work, and never outlives that. */
export class OneShotBox {
  readonly #box: BoxedProcess
  readonly #events: OneShotEvents
  readonly #wordsBound: number
  #words = ''
  #how: string | undefined
  #isRead = false
  #closed = false

  /**
   * @param spawn starts the box
   * @param wordsBound characters of stdout and stderr that are kept
   * @throws what `spawn` throws
   */
  constructor(spawn: (events: BoxedEvents) => BoxedProcess, wordsBound: number, events: OneShotEvents) {
    this.#events = events
    this.#wordsBound = wordsBound
    this.#box = spawn({
      onChannel: {
        onBytes: (bytes) => {
          if (!this.#closed) events.onBytes(bytes)
        },
        onClose: () => {
          this.#isRead = true
          this.#told()
        },
      },
      onOutput: (_fd, bytes) => this.#hear(bytes),
      onExit: (how) => {
        this.#how = how
        this.#told()
      },
    })
  }

  /** Writes to its fd 3. The caller gives the buffers away. */
  write(...parts: readonly Buffer[]): void {
    for (const part of parts) this.#box.channel.write(part)
  }

  /** SIGKILL; how it ended is told. */
  kill(): void {
    this.#box.kill()
  }

  /** Ends the program, where it runs. Nothing of it is told any more. */
  close(): void {
    this.#closed = true
    this.kill()
    for (const channel of [this.#box.channel, ...this.#box.output]) channel.close()
  }

  #hear(bytes: Buffer): void {
    const room = this.#wordsBound - this.#words.length
    if (room > 0) this.#words += bytes.toString('utf8', 0, room)
  }

  /** It may have said all that there is to say before it ended: what is still in the channel is read first. */
  #told(): void {
    const how = this.#how
    if (how === undefined || !this.#isRead) return
    // Nor may the last of its words have been read.
    setImmediate(() => {
      if (!this.#closed) this.#events.onEnd({ how, words: this.#words })
    })
  }
}
