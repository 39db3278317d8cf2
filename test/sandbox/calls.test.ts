import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BrainError } from '../../src/kernel/errors.ts'
import { type Lab, openLab, scripted, until } from './lab.ts'

let lab: Lab
beforeAll(async () => {
  lab = await openLab()
})
afterAll(async () => {
  await lab?.[Symbol.asyncDispose]()
})

const boxes = async () => (await lab.sandbox.status()).boxes
const HOST = `const host = imports['brain:tool/host'];`

describe('Sandbox.invoke()', () => {
  it('gives the guest its texts, and the text that it returns back, byte for byte', async () => {
    const id = lab.plant(
      scripted(
        'return JSON.stringify([invocation.inputJson, invocation.configurationJson, String(invocation.deadlineAtMs)])',
      ),
    )
    const input = JSON.stringify('"\\ \0 é 😀 \n'.repeat(20_000))
    const { end } = await lab.call(id, { input, configuration: '{"a":1}', deadlineAtMs: 1_800_000_000_123 })
    expect(end).toEqual({ type: 'returned', text: JSON.stringify([input, '{"a":1}', '1800000000123']) })
  })

  it('gives an empty result and deadline 0 as they are', async () => {
    const { end } = await lab.call(lab.plant(scripted(`if (invocation.deadlineAtMs !== 0n) throw 1; return ''`)))
    expect(end).toEqual({ type: 'returned', text: '' })
  })

  it('makes a fresh instance for every call, in the same box (S2)', async () => {
    const id = lab.plant(
      scripted(
        'return `${made}:${++calls}|${performance.timeOrigin}`',
        'const made = (globalThis.made = (globalThis.made ?? 0) + 1); let calls = 0',
      ),
    )
    const texts: string[] = []
    for (let i = 0; i < 3; i++) {
      const { end } = await lab.call(id)
      texts.push(end.type === 'returned' ? end.text : end.type)
    }
    const pids = new Set(texts.map((text) => text.split('|')[1]))
    expect(texts.map((text) => text.split('|')[0])).toEqual(['1:1', '2:1', '3:1'])
    expect(pids.size).toBe(1)
  })

  it('gives different keys different boxes, and parallel calls of one key too', async () => {
    const id = lab.plant(scripted(`${HOST} host.emit('x', '1'); return String(performance.timeOrigin)`))
    const pids = await Promise.all(
      ['a', 'b', 'b'].map(async (key) => {
        const { end } = await lab.call(id, {
          key: `parallel-${key}`,
          services: () => new Promise((resolve) => setTimeout(resolve, 300, '1')),
        })
        return end.type === 'returned' ? end.text : end.type
      }),
    )
    expect(new Set(pids).size).toBe(3)
  })

  it('answers host calls one after another with the texts of the guest (S4)', async () => {
    const calls: unknown[] = []
    let open = 0
    const id = lab.plant(
      scripted(`${HOST} return [host.emit('kind', '{"a":1}'), host.finish(undefined), host.finish('{}')].join()`),
    )
    const { end, facts } = await lab.call(id, {
      services: async (method, args) => {
        expect(++open).toBe(1)
        await new Promise((resolve) => setImmediate(resolve))
        open--
        calls.push([method, ...args])
        return String(40 + calls.length)
      },
    })
    expect(calls).toEqual([
      ['emit', 'kind', '{"a":1}'],
      ['finish', undefined],
      ['finish', '{}'],
    ])
    expect(end).toEqual({ type: 'returned', text: '41,42,43' })
    expect(facts.hostCalls).toBe(3)
  })

  it('gives a refusal of the host to the guest as its tool-error, which it may return', async () => {
    const id = lab.plant(scripted(`${HOST} host.emit('a', '1')`))
    const { end } = await lab.call(id, {
      services: () => Promise.reject(new BrainError('emit_limit', 'Cannot emit: 5 bytes are left')),
    })
    expect(end).toEqual({
      type: 'failed',
      code: 'emit_limit',
      message: 'Cannot emit: 5 bytes are left',
      retryable: false,
    })
  })

  it('tells the guest nothing of a defect of the server', async () => {
    const id = lab.plant(scripted(`${HOST} host.emit('a', '1')`))
    const { end } = await lab.call(id, { services: () => Promise.reject(new Error('secret path /etc/brain')) })
    const message = 'Cannot answer emit: the host failed'
    expect(end).toEqual({ type: 'failed', code: 'internal', message, retryable: false })
  })

  it('ends `trapped` when the guest throws, replaces its box, and the next call works', async () => {
    const id = lab.plant(
      scripted(
        `if (invocation.inputJson === '1') throw new Error('broken at /usr/lib/x.so'); return String(performance.timeOrigin)`,
      ),
    )
    const before = await lab.call(id)
    const { end } = await lab.call(id, { input: '1' })
    expect(end).toEqual({ type: 'trapped', code: 'tool_error', message: 'Error: broken at …' })
    const after = await lab.call(id)
    expect([before.end.type, after.end.type]).toEqual(['returned', 'returned'])
    expect(after.end).not.toEqual(before.end)
  })

  it('keeps what the guest wrote to stdout and stderr, 64 KiB of each, apart from the next call', async () => {
    const write = `const fs = process.getBuiltinModule('fs'); const put = (fd, n) => { const b = Buffer.alloc(n, fd === 1 ? 'o' : 'e'); for (let at = 0; at < n;) at += fs.writeSync(fd, b, at) };`
    const id = lab.plant(scripted(`${write} const n = Number(invocation.inputJson); put(1, n); put(2, n); return ''`))
    const { facts, end } = await lab.call(id, { input: '500000' })
    expect(end.type).toBe('returned')
    expect([facts.stdout.length, facts.stderr.length]).toEqual([65_536, 65_536])
    expect([new Set(facts.stdout).size, facts.stderr[0]]).toEqual([1, 'e'])
  })

  it('kills at the deadline a guest that loops, soon after it, and goes on (S3)', async () => {
    const id = lab.plant(scripted('for (;;);'))
    for (let i = 0; i < 3; i++) {
      await lab.call(lab.plant(scripted('return ""')))
      const started = performance.now()
      const { end, facts } = await lab.call(id, { deadlineInMs: 1000 })
      expect(end).toEqual({ type: 'stopped', reason: 'timeout' })
      expect(performance.now() - started).toBeGreaterThanOrEqual(999)
      expect(performance.now() - started).toBeLessThan(1200)
      expect(facts.cpuMs).toBeGreaterThan(0)
    }
  })

  it('`stop()` kills the box of the call; again, and after the end, it does nothing', async () => {
    const id = lab.plant(scripted(`${HOST} host.emit('up', '1'); for (;;);`))
    const { promise: up, resolve } = Promise.withResolvers<string>()
    const running = lab.start(id, { services: async () => (resolve('1'), '1') })
    await up
    running.stop('cancelled')
    running.stop('timeout')
    expect((await running.ended).end).toEqual({ type: 'stopped', reason: 'cancelled' })
    running.stop('cancelled')
    expect((await lab.call(lab.plant(scripted('return "ok"')))).end.type).toBe('returned')
  })

  it('a host call that is being answered when its call is stopped is answered to nobody', async () => {
    const id = lab.plant(scripted(`${HOST} host.model('{}'); return 'never'`))
    const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>()
    const { promise: answer, resolve: give } = Promise.withResolvers<string>()
    const running = lab.start(id, { services: () => (onAsked(), answer) })
    await asked
    running.stop('cancelled')
    expect((await running.ended).end.type).toBe('stopped')
    give('late')
    expect((await lab.call(lab.plant(scripted('return "ok"')))).end.type).toBe('returned')
  })

  it('ends `lost` when its box is killed from outside; other calls go on', async () => {
    const id = lab.plant(scripted(`${HOST} host.emit('wait', ''); return 'ok'`))
    const release = Promise.withResolvers<string>()
    const start = (key: string) => {
      const runs = Promise.withResolvers<void>()
      const execution = lab.start(id, { key, services: () => (runs.resolve(), release.promise) })
      return { execution, runs: runs.promise }
    }
    const busy = async () => (await boxes()).filter(({ state }) => state === 'busy')
    const victim = start('victim')
    await victim.runs
    const [box] = await busy()
    const other = start('other')
    await other.runs
    process.kill(box!.pid, 'SIGKILL')
    const { end } = await victim.execution.ended
    expect(end).toEqual({ type: 'lost', message: expect.stringContaining('SIGKILL') })
    release.resolve('1')
    expect((await other.execution.ended).end).toEqual({ type: 'returned', text: 'ok' })
  })

  it('refuses with `environment_not_ready` what has no artifact, and one whose bytes were changed', async () => {
    const missing = await lab.call(`${'0'.repeat(64)}` as never)
    expect(missing.end).toEqual({
      type: 'refused',
      code: 'environment_not_ready',
      message: expect.stringContaining('Cannot load component'),
    })
    const { artifactDirectory, SCRIPT_FILE } = await import('../../src/sandbox/admission/artifact.ts')
    const { appendFileSync } = await import('node:fs')
    const id = lab.plant(scripted('return "harmless"'))
    appendFileSync(`${artifactDirectory(lab.data, id)}/${SCRIPT_FILE}`, ';evil()')
    const changed = await lab.call(id)
    expect(changed.end).toMatchObject({ type: 'refused', code: 'environment_not_ready' })
  })

  it('keeps warm boxes, and kills a box that was idle too long', async () => {
    await using brief = await openLab({ boxIdleSecs: 1, warmBoxes: 2 })
    const states = async () =>
      (await brief.sandbox.status()).boxes
        .map(({ state }) => state)
        .sort()
        .join()
    await until(async () => (await states()) === 'warm,warm', 'two warm boxes')
    await brief.call(brief.plant(scripted('return ""')))
    await until(async () => (await states()) === 'idle,warm,warm', 'an idle box and two warm ones')
    await until(async () => (await states()) === 'warm,warm', 'no idle box')
  })

  it('holds a box for one call only where isolation is by invocation', async () => {
    await using strict = await openLab({}, { isolation: 'invocation' })
    const id = strict.plant(scripted('return String(performance.timeOrigin)'))
    const pids = []
    for (let i = 0; i < 3; i++) pids.push((await strict.call(id)).end)
    expect(pids.every(({ type }) => type === 'returned')).toBe(true)
    expect(new Set(pids.map((end) => JSON.stringify(end))).size).toBe(3)
  })

  it('never has more than BRAIN_MAX_BOXES: the longest idle one makes room', async () => {
    await using small = await openLab({ boxes: 2, warmBoxes: 0 })
    const id = small.plant(scripted('return String(performance.timeOrigin)'))
    const run = async (key: string) => JSON.stringify((await small.call(id, { key })).end)
    const allIdle = () =>
      until(async () => (await small.sandbox.status()).boxes.every(({ state }) => state === 'idle'), 'idle boxes')
    const a = await run('a')
    const b = await run('b')
    await allIdle()
    expect(await run('a')).toBe(a)
    await allIdle()
    await run('c') // b has been idle longest
    expect((await small.sandbox.status()).boxes.length).toBeLessThanOrEqual(2)
    expect(await run('a')).toBe(a)
    expect(await run('b')).not.toBe(b)
  })

  it('status() tells processes and their memory', async () => {
    const { level, supervisor } = await lab.sandbox.status()
    expect(level.name).toMatch(/^(?:bubblewrap|landlock)$/)
    expect(supervisor!.rssBytes).toBeGreaterThan(1e7)
    expect((await boxes()).some(({ state, privateBytes }) => state === 'idle' && privateBytes > 1e6)).toBe(true)
  })
})

describe('permits', () => {
  const held = scripted(`${HOST} host.emit('in', invocation.inputJson); return ''`)

  it('refuse with `overloaded` a call that waited for BRAIN_MAX_EXECUTION_WAIT_SECS, naming it', async () => {
    await using tight = await openLab({ sessionExecutions: 1, executionWaitSecs: 1 })
    const id = tight.plant(held)
    const release = Promise.withResolvers<string>()
    const first = tight.start(id, { services: () => release.promise })
    const started = performance.now()
    const second = await tight.call(id)
    expect(second.end).toEqual({
      type: 'refused',
      code: 'overloaded',
      message: expect.stringContaining('BRAIN_MAX_EXECUTION_WAIT_SECS'),
    })
    expect(performance.now() - started).toBeGreaterThan(990)
    const other = tight.start(id, { owner: 'another session', services: () => Promise.resolve('1') })
    expect((await other.ended).end.type).toBe('returned')
    release.resolve('1')
    expect((await first.ended).end.type).toBe('returned')
  })

  it('serve the calls of one owner in their order, and never more than BRAIN_MAX_CONCURRENT_EXECUTIONS', async () => {
    await using tight = await openLab({ concurrentExecutions: 2, sessionExecutions: 1 })
    const id = tight.plant(held)
    const order: string[] = []
    const two = Promise.withResolvers<void>()
    let running = 0
    let most = 0
    const services = async (_method: string, args: readonly (string | undefined)[]) => {
      most = Math.max(most, ++running)
      if (running === 2) two.resolve()
      order.push(args[1] ?? '')
      await two.promise
      await new Promise((resolve) => setTimeout(resolve, 20))
      running--
      return '1'
    }
    const calls = ['a', 'b', 'c'].flatMap((owner) =>
      [1, 2, 3].map((n) => tight.call(id, { owner, key: owner, input: `${owner}${n}`, services })),
    )
    const ends = await Promise.all(calls)
    expect(ends.every(({ end }) => end.type === 'returned')).toBe(true)
    for (const owner of ['a', 'b', 'c'])
      expect(order.filter((text) => text.startsWith(owner))).toEqual([1, 2, 3].map((n) => owner + n))
    expect(most).toBe(2)
  })

  it('a waiting call is cancelled without ever having begun', async () => {
    await using tight = await openLab({ concurrentExecutions: 1 })
    const id = tight.plant(held)
    const release = Promise.withResolvers<string>()
    const first = tight.start(id, { services: () => release.promise })
    const seen: string[] = []
    const second = tight.start(id, { services: async (method) => (seen.push(method), '1') })
    second.stop('cancelled')
    expect((await second.ended).end).toEqual({ type: 'stopped', reason: 'cancelled' })
    release.resolve('1')
    await first.ended
    expect(seen).toEqual([])
  })
})
