import { type AttemptOutcome, auditedAttempts, runAttempts } from '../sandbox/audit/run-attempts.ts'
import { runControl, runFrameControl } from '../sandbox/audit/run-control.ts'
import { runFrameAttempts } from '../sandbox/audit/run-frame-attempts.ts'
import { probeLevels } from '../sandbox/level.ts'
import type { SandboxLevel } from '../sandbox/sandbox.ts'
import { printable } from './printable.ts'
import type { Environment } from './environment.ts'

/** One attempt at one level; `proven`: the same attempt succeeded without a box, so that its denial says something. */
type AuditRow = AttemptOutcome & { readonly level: string; readonly proven: boolean }

export type AuditReport = {
  readonly passed: boolean
  readonly levels: readonly string[]
  /** Levels that this machine does not offer, and why. */
  readonly not_offered: readonly { readonly level: string; readonly reason: string }[]
  readonly rows: readonly AuditRow[]
}

/** Attacks real boxes of every level that this machine offers, with what harms nothing where a box does not hold. */
export async function audit(env: Environment): Promise<AuditReport> {
  const probes = await probeLevels(env['PATH'])
  const offered = probes.flatMap(({ level }) => level ?? [])
  // What ends its own process is run in boxes only; what is not run without a box is not proven.
  const harmless = auditedAttempts('system').filter(({ reach }) => reach === undefined)
  const hasBoxes = offered.length > 0
  const free = new Map(hasBoxes ? [...(await runControl(harmless)), ...(await runFrameControl())] : [])
  const rows: AuditRow[] = []
  for (const level of offered) rows.push(...(await attack(level, free)))
  return {
    passed: hasBoxes && rows.every(({ outcome }) => outcome === 'denied'),
    levels: offered.map(({ name }) => name),
    not_offered: probes.flatMap(({ name, reason }) => (reason === undefined ? [] : { level: name, reason })),
    rows,
  }
}

async function attack(level: SandboxLevel, free: ReadonlyMap<string, string>): Promise<readonly AuditRow[]> {
  const outcomes = [
    ...(await runAttempts(level, 'whole')),
    ...(await runAttempts(level, 'system')),
    ...(await runFrameAttempts(level)),
  ]
  return outcomes.map((row) => ({ level: level.name, ...row, proven: free.get(row.name) === 'THROUGH' }))
}

/** @returns the exit code: 0 when nothing got through */
export async function printAudit(env: Environment, { json = false }: { json?: boolean | undefined }): Promise<number> {
  const report = await audit(env)
  process.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : auditTable(report))
  return report.passed ? 0 : 1
}

const CATEGORY_WIDTH = 17
const COUNT_WIDTH = 18

export function auditTable({ rows, levels, not_offered: notOffered, passed }: AuditReport): string {
  const lines = levels.flatMap((level) =>
    tableOf(
      level,
      rows.filter((row) => row.level === level),
    ),
  )
  for (const { level, reason } of notOffered) lines.push(`level ${level} is not offered: ${printable(reason)}`, '')
  for (const { level, walls, name, outcome, detail } of rows.filter((row) => row.outcome !== 'denied'))
    lines.push(`${outcome.toUpperCase()}: ${name}, at level ${level} (${walls}): ${printable(detail)}`)
  const proven = rows.filter((row) => row.proven).length
  const verdict = passed
    ? `nothing got through: ${rows.length} attempts denied, ${proven} of which succeed without a box`
    : 'the boxes of this machine do not hold: run no components, and report this'
  return `${[...lines, levels.length === 0 ? 'no level is offered, so there is no box to attack' : verdict].join('\n')}\n`
}

function tableOf(level: string, rows: readonly AuditRow[]): readonly string[] {
  const cell = (category: string, walls: string): string => {
    const these = rows.filter((row) => row.category === category && row.walls === walls)
    const denied = these.filter(({ outcome }) => outcome === 'denied').length
    return these.length === 0 ? '-' : `${denied} of ${these.length} denied`
  }
  const line = (first: string, ...cells: readonly string[]): string =>
    `${first.padEnd(CATEGORY_WIDTH)}${cells.map((text) => text.padEnd(COUNT_WIDTH)).join('')}`.trimEnd()
  return [
    line(`level ${level}`, 'as components run', 'without Node flags'),
    ...[...new Set(rows.map(({ category }) => category))].map((category) =>
      line(category, cell(category, 'whole'), cell(category, 'system')),
    ),
    '',
  ]
}
