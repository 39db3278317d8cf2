import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { plantScript } from '../../src/sandbox/audit/plant-script.ts'
import { loadScripts } from '../../src/sandbox/bundle.ts'
import { BOOT } from '../../src/sandbox/launch/node-flags.ts'
import { orphanedBoxes } from '../../src/sandbox/launch/orphaned-boxes.ts'
import { spawnBoxed } from '../../src/sandbox/launch/spawn-boxed.ts'
import { openLab, scripted, until } from './lab.ts'
import { LEVELS, offeredLevel } from './levels.ts'
import { descendantsOf, descriptorsOf, livingOf, orphans, statusOf } from '../support/processes.ts'

const SPIN = scripted('for (;;);')
const QUICK = scripted('return "quick"')
const TRIALS = 5

describe.each(LEVELS)('kill -9 at level %s', (name) => {
  it('of the server leaves no process of ours after 1 s, whenever it comes', async (context) => {
    const level = offeredLevel(name, context)
    const data = mkdtempSync(join(tmpdir(), 'brain-deaths-'))
    const components = [plantScript(data, SPIN), plantScript(data, QUICK)]
    const script = new URL('throwaway-server.ts', import.meta.url).pathname
    try {
      for (let trial = 0; trial < TRIALS; trial++) {
        const server = spawn(process.execPath, ['--no-warnings', script, JSON.stringify(level), data, ...components], {
          stdio: ['ignore', 'pipe', 'inherit'],
        })
        const exited = once(server, 'exit')
        await once(server.stdout, 'data')
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 300))
        const family = descendantsOf(server.pid!)
        expect(family.length).toBeGreaterThanOrEqual(2)
        server.kill('SIGKILL')
        await exited
        // One that was being started at that moment is not of the family: nobody names its parent any more.
        await until(
          () => livingOf(family).length === 0 && orphans().length === 0,
          `the end of all in trial ${trial}`,
          1000,
        )
      }
    } finally {
      rmSync(data, { recursive: true, force: true })
    }
  })

  it('of the supervisor ends open calls `lost` and kills its boxes; later calls work (S5)', async (context) => {
    await using lab = await openLab({}, { level: offeredLevel(name, context) })
    const spin = lab.plant(SPIN)
    const quick = lab.plant(QUICK)
    for (let trial = 0; trial < 3; trial++) {
      const running = [lab.start(spin, { key: 'a' }), lab.start(spin, { key: 'b' })]
      await until(
        async () => (await lab.sandbox.status()).boxes.filter(({ state }) => state === 'busy').length === 2,
        'two busy boxes',
      )
      const { supervisor } = await lab.sandbox.status()
      const family = descendantsOf(supervisor!.pid)
      process.kill(supervisor!.pid, 'SIGKILL')
      const ends = await Promise.all(running.map(({ ended }) => ended))
      for (const { end } of ends) expect(end).toEqual({ type: 'lost', message: expect.stringContaining('SIGKILL') })
      await until(() => livingOf(family).length === 0, 'the end of its boxes', 1000)
      await until(async () => (await lab.sandbox.status()).supervisor !== undefined, 'another supervisor')
      expect((await lab.call(quick)).end).toEqual({ type: 'returned', text: 'quick' })
    }
  })

  it('of a box that is starting leaves no process, whenever it comes', async (context) => {
    const level = offeredLevel(name, context)
    const { launcher } = await loadScripts()
    const startAndKill = async () => {
      const ended = Promise.withResolvers<string>()
      const limits = { dataBytes: 1024 ** 3, cpuSecs: 10 }
      const box = spawnBoxed(
        { level, launcher, program: Buffer.from('for (;;);'), nodeFlags: [], limits },
        { onChannel: { onBytes: () => {} }, onOutput: () => {}, onExit: ended.resolve },
      )
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 15))
      box.kill()
      await ended.promise
      for (const channel of [box.channel, ...box.output]) channel.close()
    }
    for (let round = 0; round < 20; round++) await Promise.all([1, 2, 3, 4].map(startAndKill))
    await until(() => orphans().length === 0, 'the end of all', 1000)
  })

  it('of a box ends all of it, and so does its deadline', async (context) => {
    await using lab = await openLab({ warmBoxes: 0 }, { level: offeredLevel(name, context) })
    const running = lab.start(lab.plant(SPIN), { deadlineInMs: 2000 })
    await until(async () => (await lab.sandbox.status()).boxes.some(({ state }) => state === 'busy'), 'a busy box')
    const family = descendantsOf((await lab.sandbox.status()).supervisor!.pid)
    expect(family.length).toBe(name === 'bubblewrap' ? 3 : 1)
    expect((await running.ended).end).toEqual({ type: 'stopped', reason: 'timeout' })
    await until(() => livingOf(family).length === 0, 'the end of its processes', 100)
  })
})

describe('kill -9', () => {
  it('leaves nothing for long, also where bubblewrap was killed before it had told its own to die with it', async (context) => {
    const level = offeredLevel('bubblewrap', context)
    const bwrap = level.bubblewrap?.path ?? ''
    const lives = ['--unshare-pid', '--ro-bind', '/', '/', process.execPath, '-e', BOOT]
    const left = spawn(bwrap, lives, { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] })
    await until(() => descendantsOf(left.pid!).length > 1, 'what bubblewrap starts')
    const family = descendantsOf(left.pid!)
    left.kill('SIGKILL')
    await once(left, 'exit')
    expect(orphanedBoxes().length).toBeGreaterThan(0)
    await using _lab = await openLab({}, { level })
    await until(() => livingOf(family).length === 0, 'the end of what was left', 1000)
  })

  it('of the supervisor fails what is being read of a workspace, and later reads work', async () => {
    await using lab = await openLab()
    const big = Buffer.alloc(5 * 1024 * 1024, 7)
    const body = (async function* () {
      yield await Promise.resolve(big)
    })()
    await lab.sandbox.files.write('session/env', 'big', body)
    const { body: pieces } = await lab.sandbox.files.read('session/env', 'big')
    process.kill((await lab.sandbox.status()).supervisor!.pid, 'SIGKILL')
    await expect(Array.fromAsync(pieces)).rejects.toMatchObject({ code: 'storage_unavailable', retryable: true })
    await until(async () => (await lab.sandbox.status()).supervisor !== undefined, 'another supervisor')
    const again = await lab.sandbox.files.read('session/env', 'big')
    expect(Buffer.concat(await Array.fromAsync(again.body)).equals(big)).toBe(true)
  })

  it('`Symbol.asyncDispose` ends everything, and open calls `lost`', async () => {
    const lab = await openLab()
    const running = lab.start(lab.plant(SPIN))
    await until(async () => (await lab.sandbox.status()).boxes.some(({ state }) => state === 'busy'), 'a busy box')
    const family = descendantsOf(process.pid).filter(({ pid }) => statusOf(pid, 'Name') === 'node')
    await lab[Symbol.asyncDispose]()
    expect((await running.ended).end.type).toBe('lost')
    const { supervisor } = await lab.sandbox.status()
    expect(supervisor).toBeUndefined()
    await until(() => livingOf(family).length === 0, 'the end of all processes', 1000)
  })
})

describe.each(LEVELS)('a box of level %s', (name) => {
  it('holds nothing: no inherited descriptor, no capability, no privilege, no environment', async (context) => {
    await using lab = await openLab({}, { level: offeredLevel(name, context) })
    const asked = Promise.withResolvers<number>()
    const id = lab.plant(
      scripted(
        `imports['brain:tool/host'].emit('env', JSON.stringify(process.env)); return JSON.stringify(process.env)`,
      ),
    )
    const release = Promise.withResolvers<string>()
    const running = lab.start(id, { services: () => (asked.resolve(0), release.promise) })
    await asked.promise
    const { pid } = (await lab.sandbox.status()).boxes.find(({ state }) => state === 'busy')!
    const descriptors = [...descriptorsOf(pid)]
    expect(descriptors.filter(([fd]) => fd <= 3).map(([, target]) => target.replace(/\d+/, 'N'))).toEqual([
      '/dev/null',
      'socket:[N]',
      'socket:[N]',
      'socket:[N]',
    ])
    for (const [, target] of descriptors.filter(([fd]) => fd > 3))
      expect(target).toMatch(/^(?:anon_inode:\[event(?:fd|poll)\]|pipe:\[\d+\]|\/dev\/null)$/)
    expect(statusOf(pid, 'CapEff')).toBe('0000000000000000')
    expect(statusOf(pid, 'NoNewPrivs')).toBe('1')
    expect(statusOf(pid, 'Seccomp')).toBe('2')
    if (process.getuid?.() === 0) {
      expect(Number(statusOf(pid, 'Uid').split('\t')[0])).toBeGreaterThanOrEqual(61_184)
      expect(statusOf(pid, 'Groups').trim()).toBe('')
    }
    const limits = readFileSync(`/proc/${pid}/limits`, 'utf8')
    expect(limits).toMatch(/^Max file size +0 +0 /m)
    expect(limits).toMatch(/^Max core file size +0 +0 /m)
    expect(limits).toMatch(/^Max open files +64 +64 /m)
    expect(limits).toMatch(/^Max locked memory +0 +0 /m)
    expect(limits).toMatch(/^Max data size +(\d+) +\1 /m)
    expect(limits).toMatch(/^Max cpu time +255 +255 /m)
    const apart = ['pid', 'net', 'ipc', 'uts', 'mnt'].filter(
      (kind) => readlinkSync(`/proc/${pid}/ns/${kind}`) !== readlinkSync(`/proc/self/ns/${kind}`),
    )
    expect(apart).toEqual(name === 'bubblewrap' ? ['pid', 'net', 'ipc', 'uts', 'mnt'] : [])
    if (name === 'bubblewrap') {
      const root = readdirSync(`/proc/${pid}/root`)
      expect(root).toContain('node')
      expect(root.filter((entry) => !['etc', 'lib', 'lib64', 'node', 'nix', 'usr'].includes(entry))).toEqual([])
      expect(readdirSync(`/proc/${pid}/root/etc`)).toEqual(['ld.so.cache'])
    }
    release.resolve('1')
    expect((await running.ended).end).toEqual({ type: 'returned', text: '{}' })
  })
})
