import { refuse } from './refusal.ts'

/** As long as so much is free, room may be kept for one writer without another missing it. */
const AMPLE_BYTES = 16 * 1024 * 1024

export type QuotaLimits = { readonly bytes: number; readonly entries: number }

/**
 * Counts one tree: bytes of its files by their length (a sparse file costs what it claims), and entries. All calls and
 * the file API share it; requests are answered one after another, so that check and change are one step.
 */
export class Quota {
  readonly limits: QuotaLimits
  #bytes = 0
  #entries = 0
  #reserved = 0

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
    if (count > 0 && this.#bytes + this.#reserved + count > this.limits.bytes) refuse('insufficient-space')
    this.#bytes += count
  }

  /** @throws Refusal `insufficient-space` */
  addEntry(): void {
    if (this.#entries + 1 > this.limits.entries) refuse('insufficient-space')
    this.#entries++
  }

  /** Keeps room for writes that are still to come. @returns false where that room may soon be another's only room */
  reserve(count: number): boolean {
    if (this.#bytes + this.#reserved + count > this.limits.bytes - AMPLE_BYTES) return false
    this.#reserved += count
    return true
  }

  /** Gives back what {@link reserve} kept, used or not. */
  unreserve(count: number): void {
    this.#reserved -= count
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
