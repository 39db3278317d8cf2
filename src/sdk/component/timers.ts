import { clearTimer, setTimer } from './event-loop.ts'

type Ring = (...args: unknown[]) => void

const bound = (ring: Ring, args: unknown[]): (() => void) => (typeof ring === 'function' ? () => ring(...args) : ring)

/** As the web has it: `setTimeout(ring, ms, ...args)`. */
export const setTimeout = (ring: Ring, ms?: unknown, ...args: unknown[]): number =>
  setTimer(bound(ring, args), ms, false)

export const setInterval = (ring: Ring, ms?: unknown, ...args: unknown[]): number =>
  setTimer(bound(ring, args), ms, true)

export { clearTimer as clearInterval, clearTimer as clearTimeout }
