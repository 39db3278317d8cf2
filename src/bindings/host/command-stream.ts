import type { HostCommand, HostFrame } from '../../contract/host-protocol.ts'

/** A command on its way to an application: it is told once what became of it. */
export type Outgoing = {
  readonly command: HostCommand
  /** It was handed to a stream, and may have arrived. */
  readonly onSent: (connection: number) => void
  /** It was not, and never will be. */
  readonly onLost: () => void
}

/** What a stream says of its host. */
export type CommandSource = { take(): Outgoing | undefined; readonly isIdle: boolean }

/** One connection of an application: takes commands from the host's queue as fast as its reader does. */
export class CommandStream implements AsyncIterable<HostFrame> {
  readonly connection: number
  readonly #source: CommandSource
  #toldIdle: boolean | undefined
  #isClosed = false
  #wake: (() => void) | undefined

  constructor(connection: number, source: CommandSource) {
    this.connection = connection
    this.#source = source
  }

  /** Looks again at what there is to say. */
  wake(): void {
    this.#wake?.()
  }

  close(): void {
    this.#isClosed = true
    this.wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<HostFrame> {
    while (!this.#isClosed) {
      const frame = this.#next()
      if (frame !== undefined) yield frame
      else await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  #next(): HostFrame | undefined {
    const idle = this.#source.isIdle
    if (idle !== this.#toldIdle) {
      this.#toldIdle = idle
      return { event: 'activity', data: { connection: this.connection, idle } }
    }
    const outgoing = this.#source.take()
    outgoing?.onSent(this.connection)
    return outgoing === undefined ? undefined : { event: 'command', data: outgoing.command }
  }
}
