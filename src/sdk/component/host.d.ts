// What a component of JavaScript imports, as componentize-qjs gives it: 64-bit numbers are numbers.

declare module 'brain:tool/host' {
  /** Where the host refuses, each throws an Error with `payload: {code, message}`. */
  export function environments(requestJson: string): string
  export function model(requestJson: string): string
  export function emit(kind: string, payloadJson: string): number
  export function emitResult(outcomeJson: string): number
  export function returned(outcomeJson: string | null): number
  export function finish(outcomeJson: string | null): number
  export function telemetry(recordJson: string): void
}

declare module 'wasi:clocks/monotonic-clock' {
  /** Nanoseconds of a clock that never goes back. */
  export function now(): number
  export function subscribeDuration(nanoseconds: number): { block(): void }
}

declare module 'wasi:random/random' {
  export function getRandomBytes(length: number): Uint8Array | readonly number[]
}
