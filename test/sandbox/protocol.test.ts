import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { coreModule } from './core-module.ts'
import { type Lab, openLab, scripted } from './lab.ts'

let lab: Lab
beforeAll(async () => {
  lab = await openLab({ warmBoxes: 2 })
})
afterAll(async () => {
  await lab?.[Symbol.asyncDispose]()
})

/** Speaks to the supervisor past the runtime: `rq(type, bytes)` makes a frame, `put` writes it, `get` reads an answer. */
const RUDE = `
const fs = process.getBuiltinModule('fs')
const rq = (type, size) => { const b = Buffer.alloc(5 + size); b.writeUInt32LE(size + 1); b[4] = type; return b }
const put = (b) => { for (let at = 0; at < b.length;) at += fs.writeSync(3, b, at) }
const host = () => { const b = rq(12, 5); b[5] = 3; return b } // finish('')
const get = () => { const b = Buffer.alloc(65536); return b.subarray(0, fs.readSync(3, b)) }
const spin = () => { for (;;); }
`
const FILES = 11
const HOST = 12
const protocolError = { type: 'lost', message: expect.stringContaining('broke its protocol') }

const READER = `${RUDE}
const ask = (op, handle, a, path = '') => {
  const q = rq(${FILES}, 36 + path.length)
  q[5] = op
  q.writeUInt16LE(path ? 33 : 0, 7)
  q.writeUInt32LE(handle, 9)
  q.writeUInt32LE(0xffffffff, 13)
  q.writeUInt32LE(0xffffffff, 17)
  q.writeDoubleLE(a, 21)
  q.writeUInt32LE(path.length, 37)
  q.write(path, 41)
  return q
}
const exactly = (n) => { const b = Buffer.alloc(n); for (let at = 0; at < n;) at += fs.readSync(3, b, at, n - at); return b }
const answer = () => exactly(exactly(4).readUInt32LE())
// So long that each request arrives alone: two in one read break the protocol whatever was answered.
const pause = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
const open = () => { put(ask(1, 0, 0, 'file')); return answer().readUInt32LE(5) }
`
const MIB = 1024 * 1024
const mounts = [{ guest: '/workspace', workspace: 's/env', write: false }] as const
const fileOf = async function* (): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(Buffer.alloc(MIB, 1))
}

describe('answers of 1 MiB', () => {
  it('are kept for no box that asks on without reading them', async () => {
    await lab.sandbox.files.write('s/env', 'file', fileOf())
    const before = (await lab.sandbox.status()).supervisor!.rssBytes
    const code = `const h = open(); for (let i = 0; i < 30; i++) { put(ask(3, h, ${MIB})); pause() } return 'all taken'`
    const { end } = await lab.call(lab.plant(scripted(code, READER)), { mounts })
    expect(end).toEqual(protocolError)
    expect((await lab.sandbox.status()).supervisor!.rssBytes - before).toBeLessThan(100 * MIB)
  })

  it('reach a box that reads each, however many', async () => {
    await lab.sandbox.files.write('s/env', 'file', fileOf())
    const code = `const h = open(); let n = 0; for (let i = 0; i < 500; i++) { put(ask(3, h, ${MIB})); n += answer().length - 49 } return String(n)`
    const { end } = await lab.call(lab.plant(scripted(code, READER)), { mounts })
    expect(end).toEqual({ type: 'returned', text: String(500 * (MIB - 16 * 1024)) })
  })
})

// That it is killed alone, whatever it sends, is in attacks.test.ts: at every level.
describe('a box that strains the protocol', () => {
  it('gets an error where a request has the wrong shape, and goes on', async () => {
    const host = scripted(
      `const b = rq(${HOST}, 8); b[5] = 0; b.writeUInt32LE(999, 6); put(b); return get().toString('latin1', 6)`,
      RUDE,
    )
    const { end } = await lab.call(lab.plant(host))
    expect(end).toEqual({ type: 'returned', text: expect.stringContaining('invalid_request') })
    const method = scripted(`const b = rq(${HOST}, 1); b[5] = 77; put(b); return get().toString('latin1', 6)`, RUDE)
    expect((await lab.call(lab.plant(method))).end).toMatchObject({
      type: 'returned',
      text: expect.stringContaining('invalid_request'),
    })
    const file = scripted(`put(rq(${FILES}, 3)); return String(get()[5] !== 0)`, RUDE)
    expect((await lab.call(lab.plant(file))).end).toEqual({ type: 'returned', text: 'true' })
  })

  it('half a frame and silence ends at the deadline', async () => {
    const { end } = await lab.call(lab.plant(scripted(`put(Buffer.from([9, 0, 0, 0, ${FILES}])); spin()`, RUDE)), {
      deadlineInMs: 300,
    })
    expect(end).toEqual({ type: 'stopped', reason: 'timeout' })
  })

  it('a request while an instance is made ends the load, and reaches nobody', async () => {
    const seen: string[] = []
    const services = async (method: string) => (seen.push(method), '1')
    const { end } = await lab.call(lab.plant(scripted('return 1', `${RUDE}; put(rq(${HOST}, 1)); spin()`)), {
      services,
    })
    expect(end).toEqual({ type: 'refused', code: 'environment_not_ready', message: expect.any(String) })
    expect(seen).toEqual([])
  })

  it('200 MB on stdout does not grow the supervisor', async () => {
    const before = (await lab.sandbox.status()).supervisor!.rssBytes
    const flood = `const b = Buffer.alloc(1 << 20, 65); for (let i = 0; i < 200; i++) for (let at = 0; at < b.length;) at += fs.writeSync(1, b, at); return 'done'`
    const { end, facts } = await lab.call(lab.plant(scripted(flood, RUDE)))
    expect([end.type, facts.stdout.length]).toEqual(['returned', 65_536])
    expect((await lab.sandbox.status()).supervisor!.rssBytes - before).toBeLessThan(48 * 1024 * 1024)
  })

  it('a component that takes all the memory it can leaves server and supervisor as they were', async () => {
    const before = { server: process.memoryUsage.rss(), supervisor: (await lab.sandbox.status()).supervisor!.rssBytes }
    const greedy = `const all = []; for (;;) { const m = instantiateCore(getCoreModule('core'), {}).exports; if (m.grow(2047) === -1) throw new Error('no more'); new Uint8Array(m.memory.buffer).fill(1); all.push(m) }`
    const { end } = await lab.call(lab.plant(scripted(greedy), { core: coreModule() }))
    expect(end.type).not.toBe('returned')
    expect((await lab.sandbox.status()).supervisor!.rssBytes - before.supervisor).toBeLessThan(16 * 1024 * 1024)
    expect(process.memoryUsage.rss() - before.server).toBeLessThan(16 * 1024 * 1024)
    expect((await lab.call(lab.plant(scripted('return "ok"')))).end.type).toBe('returned')
  })

  it('a deadline kills a loop of `memory.fill`, which no thread could be stopped in', async () => {
    const code = `const core = instantiateCore(getCoreModule('core'), {}).exports; core.grow(300); core.fill()`
    const id = lab.plant(scripted(code), { core: coreModule() })
    const started = performance.now()
    expect((await lab.call(id, { deadlineInMs: 300 })).end).toEqual({ type: 'stopped', reason: 'timeout' })
    expect(performance.now() - started).toBeLessThan(400)
  })
})
