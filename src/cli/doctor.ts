import { dataDirectoryOf } from './data-directory.ts'
import { printable } from './printable.ts'
import { type Finding, judge } from './doctor/judge.ts'
import { readMachineFacts } from './doctor/machine-facts.ts'
import type { Environment } from './environment.ts'

export type DoctorOptions = { readonly dataDir?: string | undefined; readonly json?: boolean | undefined }

export type Diagnosis = {
  readonly can_run_components: boolean
  readonly level: string
  readonly findings: readonly Finding[]
}

/** Says what this machine offers to boxes, what is missing and how to get it. */
export async function diagnose(env: Environment, dataDir?: string): Promise<Diagnosis> {
  const facts = await readMachineFacts(dataDirectoryOf(env, dataDir), env['PATH'])
  const findings = judge(facts)
  return {
    can_run_components: findings.every(({ state }) => state !== 'problem'),
    level: facts.levels.find(({ level }) => level !== undefined)?.name ?? 'none',
    findings,
  }
}

/** @returns the exit code: 0 when components can run */
export async function doctor(env: Environment, { dataDir, json = false }: DoctorOptions): Promise<number> {
  const diagnosis = await diagnose(env, dataDir)
  process.stdout.write(json ? `${JSON.stringify(diagnosis, null, 2)}\n` : printDiagnosis(diagnosis))
  return diagnosis.can_run_components ? 0 : 1
}

const MARKS = { ok: 'ok', advice: 'advice', problem: 'PROBLEM' } as const
const MARK_WIDTH = 8
const WHAT_WIDTH = 16

export function printDiagnosis({ can_run_components: canRun, level, findings }: Diagnosis): string {
  const lines = findings.flatMap(({ what, state, found, remedy }) => [
    `${MARKS[state].padEnd(MARK_WIDTH)} ${what.padEnd(WHAT_WIDTH)} ${printable(found)}`,
    ...(remedy === undefined ? [] : [`${''.padEnd(MARK_WIDTH + WHAT_WIDTH + 2)}→ ${printable(remedy)}`]),
  ])
  const verdict = canRun ? `components can run, at level ${level}` : 'components cannot run here'
  return `${lines.join('\n')}\n${verdict}\n`
}
