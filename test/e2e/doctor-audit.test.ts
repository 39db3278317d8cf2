import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { auditTable } from '../../src/cli/audit.ts'
import type { AuditReport } from '../../src/cli/audit.ts'
import type { Diagnosis } from '../../src/cli/doctor.ts'
import { ATTEMPTS } from '../../src/sandbox/audit/attempts.ts'
import { FRAME_ATTEMPTS } from '../../src/sandbox/audit/frame-attempts.ts'
import { auditedAttempts, runAttempts, type Walls } from '../../src/sandbox/audit/run-attempts.ts'
import { LEVELS, offeredLevel } from '../sandbox/levels.ts'
import { USERS } from '../support/users.ts'

const command = join(import.meta.dirname, '../../src/cli/brain.ts')

let directory = ''
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'brain-doctor-'))
  chmodSync(directory, 0o755)
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

type Run = { readonly code: number; readonly out: string }

function brain(args: readonly string[], env: NodeJS.ProcessEnv = {}, uid?: number): Promise<Run> {
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const options = { env: { PATH, NODE_COMPILE_CACHE, ...env }, ...(uid === undefined ? {} : { uid, gid: uid }) }
  return new Promise((resolve) => {
    execFile(process.execPath, ['--no-warnings', command, ...args], options, (error, stdout) =>
      resolve({ code: Number(error?.code ?? 0), out: stdout }),
    )
  })
}

const doctor = async (args: readonly string[], env?: NodeJS.ProcessEnv, uid?: number) => {
  const { code, out } = await brain(['doctor', '--json', ...args], env, uid)
  const diagnosis = JSON.parse(out) as Diagnosis
  return { code, ...diagnosis, of: (what: string) => diagnosis.findings.find((finding) => finding.what === what) }
}

describe('brain doctor', () => {
  it.each(USERS)('exits 0 where components can run, for %s', async (_user, uid) => {
    const data = join(directory, `data-${uid}`)
    mkdirSync(data, { mode: 0o777 })
    chmodSync(data, 0o777)
    const seen = await doctor(['--data-dir', data], {}, uid)
    expect([seen.code, seen.can_run_components]).toEqual([0, true])
    expect(seen.level).toMatch(/^(?:bubblewrap|landlock)$/)
    expect(seen.of('data directory')).toEqual({ what: 'data directory', state: 'ok', found: `${data}: usable` })
  })

  it('says how to get what is missing, and calls landlock enough', async () => {
    const { code, out } = await brain(['doctor', '--data-dir', join(directory, 'new')], { PATH: '/nowhere' })
    expect(code).toBe(0)
    expect(out).toMatch(/^advice +bubblewrap +not installed\n +→ .*bubblewrap/m)
    expect(out).toMatch(/new: not there yet\n/)
    expect(out).toMatch(/\ncomponents can run, at level landlock\n$/)
  })

  it('exits 1 where no component can run: no level, or a data directory that is a link', async () => {
    const blind = await doctor(['--data-dir', directory], { NODE_OPTIONS: '--no-experimental-ffi' })
    expect([blind.code, blind.level, blind.of('sandbox level')?.state]).toEqual([1, 'none', 'problem'])
    symlinkSync(directory, join(directory, 'link'))
    const linked = await doctor([], { BRAIN_DATA_DIR: join(directory, 'link') })
    expect([linked.code, linked.of('data directory')?.state]).toEqual([1, 'problem'])
  })
})

describe('brain audit', () => {
  // As the user who tests it runs in docs/security.md, and in the package.
  it.each(USERS.slice(-1))('finds nothing that gets through, at every level, for %s', async (_user, uid) => {
    const { code, out } = await brain(['audit', '--json'], {}, uid)
    const report = JSON.parse(out) as AuditReport
    expect(report.rows.filter(({ outcome }) => outcome !== 'denied')).toEqual([])
    expect([code, report.passed]).toEqual([0, true])
    expect([...report.levels, ...report.not_offered.map(({ level }) => level)].toSorted()).toEqual([...LEVELS])
    for (const level of report.levels) {
      const of = (walls: Walls, isFrame: boolean) =>
        report.rows.filter(
          (row) => row.level === level && row.walls === walls && (row.category === 'channel') === isFrame,
        )
      const namesOf = (rows: AuditReport['rows']) => rows.map(({ name }) => name)
      // With the flags of Node, without them past the operating system alone, and past the runtime to the supervisor.
      for (const walls of ['whole', 'system'] as const)
        expect(namesOf(of(walls, false))).toEqual(auditedAttempts(walls).map(({ name }) => name))
      expect(namesOf(of('whole', true))).toEqual(FRAME_ATTEMPTS.map(({ name }) => name))
      expect(of('system', false).filter(({ proven }) => proven).length).toBeGreaterThanOrEqual(55)
      expect(of('whole', true).every(({ proven }) => proven)).toBe(true)
    }
  })

  it('runs at both levels', (context) => {
    for (const level of LEVELS) expect(offeredLevel(level, context).name).toBe(level)
  })

  it('exits 1 where there is no box to attack', async () => {
    const { code, out } = await brain(['audit'], { NODE_OPTIONS: '--no-experimental-ffi' })
    expect([code, out]).toEqual([1, expect.stringContaining('there is no box to attack')])
  })

  it('sees what gets through a box that does not hold, and names it', async () => {
    const none = { name: 'none', landlockAbi: 0, remarks: [], unsafe: true } as const
    const attempts = ATTEMPTS.filter(({ name }) => ['read /etc/passwd', 'eval', 'execve'].includes(name))
    const open = await runAttempts(none, 'system', attempts.slice(0, 1))
    expect(open).toMatchObject([{ name: 'read /etc/passwd', outcome: 'through' }])
    // A box that ends without a word has not passed.
    const lost = await runAttempts(none, 'system', attempts)
    expect(lost.map(({ outcome }) => outcome)).toEqual(['unknown', 'unknown', 'unknown'])
    const rows = open.map((row) => ({ ...row, level: 'none', proven: true }))
    const table = auditTable({ passed: false, levels: ['none'], not_offered: [], rows })
    expect(table).toContain('0 of 1 denied')
    expect(table).toContain('THROUGH: read /etc/passwd, at level none (system)')
    expect(table).toContain('do not hold')
  })
})
