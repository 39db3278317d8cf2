import { telemetry } from 'brain:tool/host'
import { isLoading } from './phase.ts'

const LEVELS: Readonly<Record<string, 'debug' | 'info' | 'warn' | 'error'>> = {
  log: 'info',
  info: 'info',
  dir: 'info',
  table: 'info',
  group: 'info',
  groupCollapsed: 'info',
  debug: 'debug',
  trace: 'debug',
  warn: 'warn',
  error: 'error',
}

/** `console` writes into the call's log; while the module is loaded there is none. */
export const guestConsole = Object.freeze({
  ...Object.fromEntries(
    Object.entries(LEVELS).map(([name, level]) => [name, (...shown: unknown[]) => log(level, ...shown)]),
  ),
  assert: (isTrue: unknown, ...shown: unknown[]) => {
    if (isTrue !== true && !isTrue) log('error', 'Assertion failed', ...shown)
  },
  groupEnd: () => {},
})

/** Leaves a line in the log of the call. */
export function log(level: string, ...shown: unknown[]): void {
  if (!isLoading()) telemetry(JSON.stringify({ level, message: shown.map(textOf).join(' ') }))
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  try {
    if (value instanceof Error) return `${String(value)}\n${value.stack ?? ''}`.trimEnd()
    return (typeof value === 'object' ? JSON.stringify(value) : undefined) ?? String(value)
  } catch {
    return Object.prototype.toString.call(value)
  }
}
