import type * as Monotonic from '@bytecodealliance/preview2-shim/interfaces/wasi-clocks-monotonic-clock'
import type * as Wall from '@bytecodealliance/preview2-shim/interfaces/wasi-clocks-wall-clock'
import type { CurrentInvocation } from './invocation.ts'
import { MILLISECOND, monotonicNow, Pollable } from './poll.ts'

/** Guests see steps of 1 ms: no clock that could measure what others do on the machine (R12). */
const coarse = (nanos: bigint): bigint => nanos - (nanos % MILLISECOND)

/** The first step at or after an instant: a guest that waits for it never finds that too little time has passed. */
const nextStep = (nanos: bigint): bigint => coarse(nanos + MILLISECOND - 1n)

export function createClocks(current: CurrentInvocation) {
  const monotonicClock = {
    now() {
      current.get()
      return coarse(monotonicNow())
    },
    resolution() {
      current.get()
      return MILLISECOND
    },
    subscribeInstant: (when: bigint) => new Pollable(current.get(), nextStep(when)),
    subscribeDuration: (duration: bigint) => new Pollable(current.get(), nextStep(monotonicNow() + duration)),
  } satisfies typeof Monotonic

  const wallClock = {
    now() {
      current.get()
      const ms = Date.now()
      return { seconds: BigInt(Math.floor(ms / 1000)), nanoseconds: (ms % 1000) * Number(MILLISECOND) }
    },
    resolution() {
      current.get()
      return { seconds: 0n, nanoseconds: Number(MILLISECOND) }
    },
  } satisfies typeof Wall

  return { monotonicClock, wallClock }
}
