import { execFile } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { runAttempts } from '../../src/sandbox/audit/run-attempts.ts'
import { type LevelProbe, probeLevel } from '../../src/sandbox/level.ts'
import { LEVELS, offeredLevel } from './levels.ts'
import { openLab, scripted } from './lab.ts'

/** As in a container that was given none: user namespaces cannot be made. */
const WITHOUT_USER_NAMESPACES = [
  '--user',
  '--map-user=65534',
  '--keep-caps',
  'sh',
  '-c',
  'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all --inh-caps=-all "$@"',
  'sh',
]

describe('probeLevel()', () => {
  it('prefers bubblewrap, and says why where it is not', async (context) => {
    expect(await probeLevel()).toEqual(offeredLevel('bubblewrap', context))
    const without = await probeLevel({ searchPath: '/nowhere' })
    expect(without).toEqual({
      ...offeredLevel('landlock', context),
      remarks: expect.arrayContaining(['bubblewrap is not used: there is no bwrap on the PATH']),
    })
  })

  it('takes a bwrap that starts no box for none, and hands on its words', async (context) => {
    const landlock = offeredLevel('landlock', context)
    const directory = mkdtempSync(join(tmpdir(), 'brain-bwrap-'))
    try {
      const script =
        '#!/bin/sh\n[ "$1" = --version ] && echo bubblewrap 9 && exit\necho no namespaces for you >&2\nexit 1\n'
      writeFileSync(join(directory, 'bwrap'), script)
      chmodSync(join(directory, 'bwrap'), 0o755)
      const { name, remarks } = await probeLevel({ searchPath: `relative:${directory}` })
      expect(name).toBe(landlock.name)
      expect(remarks.join()).toContain('no box starts (exit code 1: no namespaces for you)')
    } finally {
      rmSync(directory, { recursive: true })
    }
  })

  it('offers landlock also where user namespaces are switched off', async (context) => {
    const level = offeredLevel('landlock', context)
    offeredLevel('bubblewrap', context)
    const script = new URL('print-levels.ts', import.meta.url).pathname
    const command = [...WITHOUT_USER_NAMESPACES, process.execPath, '--no-warnings', script]
    const { stdout } = await promisify(execFile)('unshare', command, { env: { PATH: '/usr/bin:/bin' } })
    const [bubblewrap, landlock] = JSON.parse(stdout) as LevelProbe[]
    expect(bubblewrap).toEqual({ name: 'bubblewrap', reason: expect.stringMatching(/no box starts .*namespace/) })
    expect(landlock).toEqual({ name: 'landlock', level })
  })
})

describe.each(LEVELS)('level %s', (name) => {
  it('stands in the status, and runs a component', async (context) => {
    const level = offeredLevel(name, context)
    await using lab = await openLab({}, { level })
    expect((await lab.sandbox.status()).level).toEqual(level)
    expect((await lab.call(lab.plant(scripted('return invocation.inputJson')), { input: '7' })).end).toEqual({
      type: 'returned',
      text: '7',
    })
  })
})

describe('level bubblewrap on a kernel without landlock', () => {
  it('lets nothing through either', async (context) => {
    const rows = await runAttempts({ ...offeredLevel('bubblewrap', context), landlockAbi: 0 }, 'system')
    expect(rows.filter(({ outcome }) => outcome !== 'denied')).toEqual([])
  })
})
