import { refuse } from './refusal.ts'

export type QuotaLimits = { readonly bytes: number; readonly entries: number }

/**
 * Counts one tree: bytes of its files by their length (a sparse file costs what it claims), and entries. All calls and
 * the file API share it; requests are answered one after another, so that check and change are one step.
 */
export class Quota {
  readonly limits: QuotaLimits
  #bytes = 0
  #entries = 0

  constructor(limits: QuotaLimits) {
    this.limits = limits
  }

  get bytes(): number {
    return this.#bytes
  }

  get entries(): number {
    return this.#entries
  }

  /** @throws Refusal `insufficient-space` */
  addBytes(count: number): void {
    if (count > 0 && this.#bytes + count > this.limits.bytes) refuse('insufficient-space')
    this.#bytes += count
  }

  /** @throws Refusal `insufficient-space` */
  addEntry(): void {
    if (this.#entries + 1 > this.limits.entries) refuse('insufficient-space')
    this.#entries++
  }

  /** Takes over what is there already, even when it is over the limit. */
  count(bytes: number, entries: number): void {
    this.#bytes += bytes
    this.#entries += entries
  }

  /** Gives back. Files that others change on disk behind the broker must not make the counters negative. */
  release(bytes: number, entries = 0): void {
    this.#bytes = Math.max(0, this.#bytes - bytes)
    this.#entries = Math.max(0, this.#entries - entries)
  }
}
