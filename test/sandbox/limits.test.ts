import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { join as joined, leb, list, module, section, toBuffer } from '../fixtures/wasm-builder.ts'
import { coreModule } from './core-module.ts'
import { type Lab, openLab, scripted, until } from './lab.ts'
import { soakOr } from '../support/soak.ts'

const MIB = 1024 * 1024
const CORE = `const core = instantiateCore(getCoreModule('core'), {}).exports;`

let lab: Lab
beforeAll(async () => {
  lab = await openLab({
    guestCpuSecs: 1,
    hostCalls: 50,
    guestFileOps: 20,
    executionOutputBytes: 4096,
    linearMemoryBytes: 64 * MIB,
  })
})
afterAll(async () => {
  await lab?.[Symbol.asyncDispose]()
})

const HOST = `const host = imports['brain:tool/host'];`
const trapped = (code: string, variable: string, value: number) => ({
  type: 'trapped',
  code,
  message: expect.stringMatching(new RegExp(`${value} .*\\(${variable}\\)`)),
})

describe('limits of an invocation end it with their own code, value and variable (contract A27)', () => {
  it('compute_limit: CPU seconds as the kernel counts them, not time spent waiting', async () => {
    const burn = lab.plant(scripted('for (;;);'))
    const started = performance.now()
    const { end, facts } = await lab.call(burn)
    expect(end).toEqual(trapped('compute_limit', 'BRAIN_MAX_GUEST_CPU_SECS', 1))
    expect(facts.cpuMs).toBeGreaterThanOrEqual(1000)
    expect(performance.now() - started).toBeLessThan(5000)
    const wait = lab.plant(scripted(`${HOST} host.emit('a', '1'); return 'waited'`))
    const services = () => new Promise<string>((resolve) => setTimeout(resolve, 1500, '1'))
    expect((await lab.call(wait, { services })).end).toEqual({ type: 'returned', text: 'waited' })
  })

  it('compute_limit counts each call for itself', async () => {
    const id = lab.plant(
      scripted('const end = Date.now() + 400; while (Date.now() < end); return String(performance.timeOrigin)'),
    )
    for (let i = 0; i < 4; i++) expect((await lab.call(id)).end.type).toBe('returned')
  })

  it('host_call_limit', async () => {
    const id = lab.plant(
      scripted(`${HOST} for (let i = 0; i < Number(invocation.inputJson); i++) host.emit('a', '1'); return 'done'`),
    )
    expect((await lab.call(id, { input: '50' })).end).toEqual({ type: 'returned', text: 'done' })
    const { end, facts } = await lab.call(id, { input: '51' })
    expect(end).toEqual(trapped('host_call_limit', 'BRAIN_MAX_HOST_CALLS', 50))
    expect(facts.hostCalls).toBe(51)
  })

  it('file_limit: more file requests than allowed, whatever the runtime in the box does about it', async () => {
    const ask = `const fs = process.getBuiltinModule('fs'); const request = Buffer.alloc(41); request.writeUInt32LE(37); request[4] = 11;
      const reply = Buffer.alloc(4096); for (let i = 0; i < Number(invocation.inputJson); i++) { fs.writeSync(3, request); fs.readSync(3, reply) } return 'done'`
    const id = lab.plant(scripted(ask))
    const within = await lab.call(id, { input: '20' })
    expect(within).toMatchObject({ end: { type: 'returned', text: 'done' }, facts: { fileOps: 20 } })
    expect((await lab.call(id, { input: '21' })).end).toEqual(trapped('file_limit', 'BRAIN_MAX_GUEST_FILE_OPS', 20))
  })

  it('output_limit, to the byte', async () => {
    const id = lab.plant(scripted(`return 'x'.repeat(Number(invocation.inputJson))`))
    expect((await lab.call(id, { input: '4096' })).end).toEqual({ type: 'returned', text: 'x'.repeat(4096) })
    expect((await lab.call(id, { input: '4097' })).end).toEqual(
      trapped('output_limit', 'BRAIN_MAX_EXECUTION_OUTPUT_BYTES', 4096),
    )
  })

  it.each([
    ['a table over the limit of one', 1, 65_537, 'refused'],
    ['tables that are too many together', 2000, 65_536, 'trapped'],
  ])('memory_limit holds for tables: %s', async (_what, count, size, type) => {
    const table = joined([0x70, 0x00], leb(size))
    const core = toBuffer(module(section(4, list(Array.from({ length: count }, () => table)))))
    const { end } = await lab.call(lab.plant(scripted('return "ok"', CORE), { core }))
    expect(end.type).toBe(type)
    const few = toBuffer(module(section(4, list([joined([0x70, 0x00], leb(65_536))]))))
    expect((await lab.call(lab.plant(scripted('return "ok"', CORE), { core: few }))).end.type).toBe('returned')
  })

  it('memory_limit: a component whose memory cannot be had does not start, and the next one does', async () => {
    const id = lab.plant(scripted('return "ok"', CORE), { core: coreModule({ pages: 1025 }) })
    const { end } = await lab.call(id)
    expect(end).toEqual(trapped('memory_limit', 'BRAIN_MAX_LINEAR_MEMORY_BYTES', 64 * MIB))
    expect((await lab.call(lab.plant(scripted('return "ok"', CORE), { core: coreModule() }))).end.type).toBe('returned')
  })

  it("memory_limit: by the guest's own last words", async () => {
    const id = lab.plant(
      scripted(
        `process.getBuiltinModule('fs').writeSync(2, 'memory allocation of 4294967296 bytes failed\\n'); throw new Error('unreachable')`,
      ),
    )
    expect((await lab.call(id)).end).toEqual(trapped('memory_limit', 'BRAIN_MAX_LINEAR_MEMORY_BYTES', 64 * MIB))
  })

  it('memory_limit: when V8 itself gives up in the box', async () => {
    const id = lab.plant(scripted('const all = []; for (let i = 0; ; i++) all.push(new Array(1000).fill(i + 0.5)); '))
    expect((await lab.call(id)).end).toEqual(trapped('memory_limit', 'BRAIN_MAX_LINEAR_MEMORY_BYTES', 64 * MIB))
  })

  it('`memory.grow` to 4 GiB fails in the guest, and the call ends by what the guest makes of it', async () => {
    const grow = `let pages = 0; while (core.grow(16) !== -1) pages += 16; return String(pages)`
    const id = lab.plant(scripted(grow, CORE), { core: coreModule() })
    const { end } = await lab.call(id)
    expect(end).toEqual({ type: 'returned', text: expect.stringMatching(/^(?:9\d\d|10[012]\d)$/) })
  })
})

describe('making an instance', () => {
  it('has no host imports: its failure is the own error of the call, and is not repeated for ever', async () => {
    const id = lab.plant(scripted('return 1', `imports['brain:tool/host'].emit('a', '1')`))
    const seen: string[] = []
    const services = async (method: string) => (seen.push(method), '1')
    for (let i = 0; i < 2; i++) {
      const { end } = await lab.call(id, { services })
      expect(end).toEqual({
        type: 'trapped',
        code: 'tool_error',
        message: expect.stringContaining('Cannot start the tool'),
      })
    }
    expect(seen).toEqual([])
  })

  it('is killed after 5 s when a start function loops; others go on', async () => {
    const id = lab.plant(scripted('return 1', CORE), { core: coreModule({ startSpins: true }) })
    const looping = lab.call(id)
    expect((await lab.call(lab.plant(scripted('return "ok"')))).end.type).toBe('returned')
    expect((await looping).end).toEqual({
      type: 'trapped',
      code: 'tool_error',
      message: expect.stringContaining('5000 ms'),
    })
  })

  it('that never settles ends like one that fails', async () => {
    const id = lab.plant('export function instantiate() { return new Promise(() => {}) }\n')
    expect((await lab.call(id)).end).toMatchObject({ type: 'refused', code: 'environment_not_ready' })
  })

  it('refuses JavaScript and code that cannot be compiled', async () => {
    const broken = await lab.call(lab.plant('export function instantiate( {'))
    expect(broken.end).toEqual({
      type: 'refused',
      code: 'environment_not_ready',
      message: expect.stringContaining('SyntaxError'),
    })
    const noWasm = await lab.call(lab.plant(scripted('return 1'), { core: Buffer.from('not wasm') }))
    expect(noWasm.end).toEqual({
      type: 'refused',
      code: 'environment_not_ready',
      message: expect.stringContaining('CompileError'),
    })
  })

  it('that fails only after a call does not harm that call, and is tried again for the next one', async () => {
    const id = lab.plant(
      scripted(
        'return String(made)',
        'const made = globalThis.made = (globalThis.made ?? 0) + 1; if (made > 1) throw new Error("second")',
      ),
    )
    for (let i = 0; i < 3; i++) expect((await lab.call(id)).end).toEqual({ type: 'returned', text: '1' })
  })

  it('is within the deadline of the call', async () => {
    const id = lab.plant(scripted('return 1', `for (;;); // ${Math.random()}`))
    expect((await lab.call(id, { deadlineInMs: 300 })).end).toEqual({ type: 'stopped', reason: 'timeout' })
  })
})

describe('memory of dead instances', () => {
  const CALLS = soakOr(200, 30)
  it(`${CALLS} calls of a tool that uses 100 MiB succeed in one box`, async () => {
    await using roomy = await openLab({ linearMemoryBytes: 128 * MIB })
    const use = `if (core.grow(1599) === -1) throw new Error('no memory'); new Uint8Array(core.memory.buffer).fill(1); return String(performance.timeOrigin)`
    const id = roomy.plant(scripted(use, CORE), { core: coreModule() })
    const ends = new Set<string>()
    for (let i = 0; i < CALLS; i++) ends.add(JSON.stringify((await roomy.call(id)).end))
    expect([...ends]).toEqual([expect.stringMatching(/^{"type":"returned"/)])
  })

  it('is collected only when it passes half of the budget', async () => {
    await using roomy = await openLab({ linearMemoryBytes: 64 * MIB })
    const before = `${CORE} globalThis.all ??= []; all.push(new WeakRef(core.memory));`
    const run = `if (core.grow(15) === -1) throw new Error('no memory'); return String(all.filter((ref) => ref.deref() !== undefined).length)`
    const id = roomy.plant(scripted(run, before), { core: coreModule() })
    const alive: number[] = []
    for (let i = 0; i < 120; i++) {
      const { end } = await roomy.call(id)
      alive.push(end.type === 'returned' ? Number(end.text) : -1)
    }
    expect(Math.min(...alive)).toBeGreaterThan(0)
    expect(Math.max(...alive)).toBeGreaterThan(20) // not after every call
    expect(Math.max(...alive)).toBeLessThanOrEqual(36) // 32 MiB of 1 MiB each, the next one, the one that runs
  })

  it('that a box does not give back costs it its life', async () => {
    await using roomy = await openLab({ linearMemoryBytes: 64 * MIB })
    const hold = `globalThis.held ??= []; if (invocation.inputJson !== '0') held.push(Buffer.alloc(Number(invocation.inputJson), 1)); return String(performance.timeOrigin)`
    const id = roomy.plant(scripted(hold))
    const ends = []
    for (const input of ['0', '0', String(300 * MIB), '0']) ends.push((await roomy.call(id, { input })).end)
    expect(ends.map(({ type }) => type)).toEqual(['returned', 'returned', 'returned', 'returned'])
    expect(ends[1]).toEqual(ends[0])
    // It is looked at once a second, and nothing says when.
    const first = ends[0]
    await until(
      async () => !isDeepStrictEqual((await roomy.call(id, { input: '0' })).end, first),
      'calls are answered by another box',
    )
  })
})
