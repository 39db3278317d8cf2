import { BrainError } from '../../kernel/errors.ts'

const FORM = /^(\d+(?:\.\d+)?)(ms|s|m)$/
const MILLISECONDS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000 }

/**
 * Milliseconds of a duration such as `250ms`, `5s`, `1.5s` or `2m`.
 * @throws BrainError `invalid_request` for other texts, and for less than a millisecond or more than a day
 */
export function parseDuration(text: string, what: string): number {
  const [, amount, unit = ''] = FORM.exec(text) ?? []
  const ms = Math.round(Number(amount) * (MILLISECONDS[unit] ?? Number.NaN))
  if (ms >= 1 && ms <= 86_400_000) return ms
  throw new BrainError(
    'invalid_request',
    `Cannot use ${what} ${JSON.stringify(text.slice(0, 40))}: write a duration such as 250ms, 5s or 2m, at most 1440m`,
  )
}
