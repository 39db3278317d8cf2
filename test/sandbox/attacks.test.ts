import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { openAttacked } from '../../src/sandbox/audit/attacked.ts'
import { ATTEMPTS } from '../../src/sandbox/audit/attempts.ts'
import { FRAME_ATTEMPTS } from '../../src/sandbox/audit/frame-attempts.ts'
import { type ControlAnswers, runControl, runFrameControl } from '../../src/sandbox/audit/run-control.ts'
import { runFrameAttempts } from '../../src/sandbox/audit/run-frame-attempts.ts'
import type { SandboxLevel } from '../../src/sandbox/sandbox.ts'
import { LEVELS, offeredLevel } from './levels.ts'
import { USERS } from '../support/users.ts'

type Outcome = Readonly<Record<string, string>>

/** Never run without a box: they would end the test, or harm its machine. */
const isHarmful = (name: string): boolean =>
  ['process', 'machine'].includes(ATTEMPTS.find((attempt) => attempt.name === name)?.reach ?? '')

/** As a component, behind the runtime of boxes, where the server is this user. */
async function asComponent(level: SandboxLevel, uid: number | undefined): Promise<Outcome> {
  await using attacked = await openAttacked()
  const { dir, port } = attacked
  const data = join(dir, 'tmp')
  mkdirSync(data)
  chmodSync(data, 0o777)
  const runner = new URL('attack-run.ts', import.meta.url).pathname
  const child = spawn(process.execPath, ['--no-warnings', runner, JSON.stringify(level), dir, String(port)], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { TMPDIR: data, PATH: '/usr/bin:/bin' },
    ...(uid === undefined ? {} : { uid, gid: uid }),
  })
  const [code] = await once(child, 'exit')
  expect(code).toBe(0)
  const end = JSON.parse(readFileSync(join(dir, 'outcome.json'), 'utf8')) as { type: string; text: string }
  expect(end).toMatchObject({ type: 'returned' })
  return JSON.parse(end.text) as Outcome
}

let free: ControlAnswers
/** Only an attempt that succeeds without a box proves something when it fails in one. */
let real: readonly string[]
beforeAll(async () => {
  free = await runControl(ATTEMPTS.filter(({ name }) => !isHarmful(name)))
  real = [...free].flatMap(([name, answer]) => (answer === 'THROUGH' ? name : []))
})

it('what is tried succeeds without a box', () => {
  expect(real.length).toBeGreaterThanOrEqual(60)
  expect([...new Set(ATTEMPTS.filter(({ name }) => real.includes(name)).map(({ category }) => category))]).toEqual([
    ...new Set(ATTEMPTS.map(({ category }) => category)),
  ])
  for (const [name, answer] of free)
    if (!real.includes(name)) process.stderr.write(`proves nothing on this machine: ${name} (${answer})\n`)
})

describe.each(LEVELS)('hostile JavaScript in a box of level %s', (name) => {
  it.for(USERS)('of %s gets nothing of what succeeds without a box', async ([, uid], context) => {
    const box = await asComponent(offeredLevel(name, context), uid)
    expect(Object.keys(box).toSorted()).toEqual(ATTEMPTS.map((attempt) => attempt.name).toSorted())
    expect(Object.keys(box).filter((attempt) => box[attempt] === 'THROUGH')).toEqual([])
  })
})

describe('frames past the runtime', () => {
  it('all leave, and their sender lives on, where nobody minds: the control', async () => {
    const sent = await runFrameControl()
    expect([...sent]).toEqual(FRAME_ATTEMPTS.map((attempt) => [attempt.name, 'THROUGH']))
  })

  it('that are right, or an end that was only said, are told from an attack', async (context) => {
    const rows = await runFrameAttempts(offeredLevel('landlock', context), [
      { name: 'right requests', source: 'put(file); fs.readSync(3, Buffer.alloc(65536))' },
      { name: 'one end', source: 'put(frame(13, 17)); fs.readSync(3, Buffer.alloc(65536))' },
      { name: 'an error of its own', source: "throw new Error('no')" },
    ])
    expect(rows.map(({ outcome, detail }) => [outcome, detail])).toEqual([
      ['through', 'the box lived on'],
      ['through', 'the box lived on'],
      ['unknown', expect.stringContaining('no')],
    ])
  })
})
