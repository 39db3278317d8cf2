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

/** Something that the egress broker knows when it is ready. */
export type Watch = {
  readonly handle: number
  readonly phase: number
  /** Ready for certain, without asking. */
  readonly isReady: () => boolean
}

/** `wasi:io/poll`: something to wait for. Streams of files are always ready: it is a time, an HTTP message, or nothing. */
export class Pollable extends Resource implements Wasi.Pollable {
  /** On the clock of `monotonicNow`; undefined = ready at once. */
  readonly due: bigint | undefined
  readonly watch: Watch | undefined

  constructor(invocation: Invocation, due?: bigint, watch?: Watch) {
    super(invocation)
    this.due = due
    this.watch = watch
  }

  /** Undefined when only the broker knows. */
  readyHere(): boolean | undefined {
    if (this.watch !== undefined) return this.watch.isReady() || undefined
    return this.due === undefined || monotonicNow() >= this.due
  }

  ready(): boolean {
    return this.readyHere() ?? waitFor([this], 0)[0] === 0
  }

  block(): void {
    if (this.watch !== undefined) poll([this])
    else if (this.due !== undefined) {
      this.invocation.files.flush()
      waitUntil(this.due)
    }
  }
}

/** Looks at all of them, and waits for the broker if one of them needs it. @returns the places of those that are ready */
function waitFor(pollables: readonly Pollable[], waitMs: number): number[] {
  const answers = pollables.map((pollable) => pollable.readyHere())
  const asked = pollables.filter((_, index) => answers[index] === undefined)
  const [first] = asked
  if (first !== undefined) {
    const watches = asked.flatMap(({ watch }) => watch ?? [])
    const told = first.invocation.egress.poll(watches, answers.includes(true) ? 0 : waitMs)
    let at = 0
    for (const [index, answer] of answers.entries()) if (answer === undefined) answers[index] = told[at++] === 1
  }
  return answers.flatMap((answer, index) => (answer === true ? [index] : []))
}

/** Waits until at least one is ready; answers the places of all that are. @throws Error, a trap, for an empty list */
export function poll(pollables: readonly Pollable[]): Uint32Array {
  const [first] = pollables
  if (first === undefined) throw new Error('poll of nothing would wait for ever')
  if (!pollables.some((pollable) => pollable.readyHere() === true)) first.invocation.files.flush()
  for (;;) {
    let soonest: bigint | undefined
    for (const { due } of pollables) if (due !== undefined && (soonest === undefined || due < soonest)) soonest = due
    const leftMs = soonest === undefined ? Number.POSITIVE_INFINITY : Number(soonest - monotonicNow()) / 1e6
    const ready = waitFor(pollables, Math.max(leftMs, 0))
    if (ready.length > 0) return Uint32Array.from(ready)
    if (soonest !== undefined && pollables.every(({ watch }) => watch === undefined)) waitUntil(soonest)
  }
}
