import type { Outcome } from '../../contract/outcome.ts'

/** Exit codes of commands that run a tool; 1 is left for commands that could not. */
export const EXIT_CODES = {
  ok: 0,
  error: 3,
  timeout: 4,
  cancelled: 5,
  unknown: 6,
} as const satisfies Record<Outcome['status'], number>
