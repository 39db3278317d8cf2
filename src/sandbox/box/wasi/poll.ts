import type * as Wasi from '@bytecodealliance/preview2-shim/interfaces/wasi-io-poll'
import { type Invocation, Resource } from './invocation.ts'

export const MILLISECOND = 1_000_000n
/** `Atomics.wait` takes no more at once. */
const LONGEST_WAIT_MS = 0x7fff_ffff

const cell = new Int32Array(new SharedArrayBuffer(4))

export const monotonicNow = (): bigint => process.hrtime.bigint()

/** Blocks the box until `instant`, never less. Nothing can wake it before: deadlines are kills. */
function waitUntil(instant: bigint): void {
  for (let left = instant - monotonicNow(); left > 0n; left = instant - monotonicNow()) {
    Atomics.wait(cell, 0, 0, Math.min(Number(left) / Number(MILLISECOND), LONGEST_WAIT_MS))
  }
}

/** `wasi:io/poll`: something to wait for. All streams are always ready, so that it is a time or nothing. */
export class Pollable extends Resource implements Wasi.Pollable {
  /** On the clock of `monotonicNow`; undefined = ready at once. */
  readonly due: bigint | undefined

  constructor(invocation: Invocation, due?: bigint) {
    super(invocation)
    this.due = due
  }

  ready(): boolean {
    return this.due === undefined || monotonicNow() >= this.due
  }

  block(): void {
    if (this.due === undefined) return
    this.invocation.files.flush()
    waitUntil(this.due)
  }
}

const readyOnes = (pollables: readonly Pollable[]): number[] =>
  pollables.flatMap((pollable, index) => (pollable.ready() ? [index] : []))

/** Waits until at least one is ready; answers the places of all that are. @throws Error, a trap, for an empty list */
export function poll(pollables: readonly Pollable[]): Uint32Array {
  if (pollables.length === 0) throw new Error('poll of nothing would wait for ever')
  for (;;) {
    const ready = readyOnes(pollables)
    if (ready.length > 0) return Uint32Array.from(ready)
    let soonest: bigint | undefined
    for (const { due } of pollables) if (due !== undefined && (soonest === undefined || due < soonest)) soonest = due
    pollables[0]?.invocation.files.flush()
    if (soonest !== undefined) waitUntil(soonest)
  }
}
