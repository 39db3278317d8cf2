import type { Channel } from '../wire/channel.ts'

/** Kept of each stream of a call (contract A29); the rest is read and dropped. */
export const OUTPUT_BYTES = 64 * 1024

const scratch = Buffer.allocUnsafe(OUTPUT_BYTES)

/** One stream of a box: what the guest, and Node in its last moments, write to stdout or stderr. */
export class CallOutput {
  #kept: Buffer[] = []
  #room = OUTPUT_BYTES
  #received = 0

  push(bytes: Buffer): void {
    this.#received += bytes.length
    if (this.#room === 0) return
    const kept = Buffer.from(bytes.subarray(0, this.#room))
    this.#room -= kept.length
    this.#kept.push(kept)
  }

  /**
   * Reads what has been written but not yet delivered: the channel that says "done" overtakes this one.
   *
   * @param written what the box says it wrote since the start; a lie costs one failing read.
   */
  catchUp(channel: Channel, written: number): void {
    while (this.#received < written) {
      const count = channel.readNow(scratch)
      if (count === 0) return
      this.push(scratch.subarray(0, count))
    }
  }

  get bytes(): Buffer {
    const [first] = this.#kept
    return this.#kept.length === 1 && first !== undefined ? first : Buffer.concat(this.#kept)
  }

  restart(): void {
    if (this.#received === 0) return
    this.#kept = []
    this.#room = OUTPUT_BYTES
    this.#received = 0
  }
}
