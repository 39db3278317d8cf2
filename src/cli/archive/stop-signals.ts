import { BrainError } from '../../kernel/errors.ts'

/** A signal that is aborted by SIGINT and SIGTERM, so that a command can take away what it has begun. */
export function stopSignals(action: string): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController()
  const stop = (signal: NodeJS.Signals): void =>
    controller.abort(new BrainError('cancelled', `Cannot ${action}: stopped by ${signal}; nothing of it is left`))
  process.on('SIGINT', stop).on('SIGTERM', stop)
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => void process.off('SIGINT', stop).off('SIGTERM', stop),
  }
}
