// The world of wit/agentloop.wit as componentize-qjs gives it to JavaScript: 64-bit numbers are numbers.

declare module 'brain:agentloop/host' {
  /** Where the host refuses, each throws an Error with `payload: {code, message, retryable}`. */
  export function model(requestJson: string): string
  export function dispatch(callsJson: string): string
  export function events(after: number): string
  export function setTranscript(messagesJson: string): number
  export function kvRead(key: string): string | undefined
  export function kvPut(key: string, valueJson: string): number
  export function kvDelete(key: string): number
  export function emit(kind: string, payloadJson: string): number
  export function environments(requestJson: string): string
  export function telemetry(recordJson: string): void
}
