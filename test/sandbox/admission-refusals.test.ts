import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Script } from 'node:vm'
import { defaultLimits } from '../../src/contract/limits.ts'
import { readArtifact } from '../../src/sandbox/admission/artifact.ts'
import { ScriptCheck } from '../../src/sandbox/admission/script-check.ts'
import { transpile } from '../../src/sandbox/admission/transpile.ts'
import type { SpawnChild } from '../../src/sandbox/admission/admission-child.ts'
import { loadTranspiler } from '../../src/sandbox/admission/transpiler/program.ts'
import {
  component,
  custom,
  FIRST_EXTRA_TYPE,
  join,
  leb,
  list,
  module,
  result,
  section,
  STRING,
  text,
  toBuffer,
  toolComponent,
  tuple,
  type Bytes,
} from '../fixtures/wasm-builder.ts'
import { soakOr } from '../support/soak.ts'
import { idOf, level, type OpenedStore, openStore, refusalOf, spawnInBox } from './admission-store.ts'

/** `levels` types, each made of two of the one before. */
function nestedTypes(levels: number, pair: (inner: Bytes) => Bytes): Bytes {
  const inner = (i: number) => (i === 0 ? STRING : leb(FIRST_EXTRA_TYPE + i - 1))
  return toolComponent({
    extraTypes: Array.from({ length: levels }, (_, i) => pair(inner(i))),
    initParameter: FIRST_EXTRA_TYPE + levels - 1,
  })
}
const tupleBomb = (levels: number) => nestedTypes(levels, (inner) => tuple([inner, inner]))
const resultBomb = (levels: number) => nestedTypes(levels, (inner) => result(inner, inner))

/** Another valid tool for every number: none answers for another. */
const good = (number: number): Buffer => toBuffer(toolComponent({ after: [custom('number', String(number))] }))

describe('a bad upload', () => {
  let opened: OpenedStore
  beforeAll(async () => {
    opened = await openStore({ limits: { packageBytes: 64 * 1024 } })
  })
  afterAll(async () => await opened.close())

  const valid = toBuffer(toolComponent())
  const outermost = toBuffer(component(section(11, list([join([0], text('run'), [1, 0, 0])]))))
  outermost[9]! += 1

  const schema = { name: 'a', description: 'b', input_schema: { type: 'nothing' } }
  const cases: readonly [what: string, bytes: Uint8Array, fault: string, reason: RegExp][] = [
    ['an empty body', Buffer.alloc(0), 'empty', /empty/],
    ['a text', Buffer.from('hello'), 'not_wasm', /not WebAssembly/],
    ['a core module', toBuffer(module()), 'core_module', /core module, not a component.*wasm32-wasip2/],
    [
      'a component of another world',
      toBuffer(toolComponent({ exportName: 'start' })),
      'wrong_world',
      /no export "run".*"start"/,
    ],
    ['a tool cut in the middle', valid.subarray(0, valid.length / 2), 'malformed', /at byte \d+/],
    ['a section that is one too long', outermost, 'malformed', /at byte \d+/],
    [
      'an export that is none of a tool',
      toBuffer(toolComponent({ moreExports: ['init', 'backdoor'] })),
      'wrong_world',
      /it exports the function "backdoor"\. A tool exports "run"/,
    ],
    [
      'an import that is not offered',
      toBuffer(
        toolComponent({
          before: [section(7, list([[0x42, 0]])), section(10, list([join([0], text('acme:db/sql@1.0.0'), [5, 0])]))],
        }),
      ),
      'refused_import',
      /"acme:db\/sql@1\.0\.0"/,
    ],
    ['a shared memory', toBuffer(toolComponent({ memory: [3, 1, 1] })), 'unsupported_feature', /shared memory/],
    ['a name that breaks out of a literal', toBuffer(toolComponent({ coreName: "x'];0" })), 'unsafe_name', /core name/],
    [
      'metadata that is not usable',
      toBuffer(toolComponent({ after: [custom('brain:tool-metadata', JSON.stringify(schema))] })),
      'bad_metadata',
      /input_schema/,
    ],
    ['64 KiB and one byte', Buffer.alloc(64 * 1024 + 1), 'too_large', /65536 bytes \(BRAIN_MAX_PACKAGE_BYTES\)/],
    [
      'code that does not type-check',
      toBuffer(toolComponent({ run: [0x42, 0x00] })),
      'malformed',
      /at byte \d+: .*type mismatch/,
    ],
    [
      'a component that the gate cannot judge',
      toBuffer(toolComponent({ after: [section(7, [0xff, 0x01])] })),
      'malformed',
      /at byte \d+/,
    ],
  ]

  test.each(cases)('is refused: %s', async (_what, bytes, fault, reason) => {
    const before = await opened.paths()
    const refused = await refusalOf(opened.admit(bytes))
    expect(refused.code).toBe('invalid_request')
    expect(refused.fault).toBe(fault)
    expect(refused.message).toMatch(/^Cannot admit the component: /)
    expect(refused.message).toMatch(reason)
    expect(refused.message).not.toMatch(/\n|\bat .*:\d+:\d+/) // one line, no stack
    expect(refused.body).toBe(fault === 'too_large' ? 'too_large' : undefined)
    expect(await opened.paths()).toEqual(before)
    expect(await opened.store.list('local')).toEqual([])
  })

  test('does not spoil the good one after it', async () => {
    const admitted = await opened.admit(valid)
    expect(admitted).toMatchObject({ id: idOf(valid), bytes: valid.length, imports: ['brain:tool/types'] })
    expect((await readArtifact(opened.directory, admitted.id)).cores).toHaveLength(1)
  })
})

describe('a component that costs too much to transpile', () => {
  let opened: OpenedStore
  let cpuSecs = 5
  beforeAll(async () => {
    const hasty: SpawnChild = (start, events) => {
      expect(start.limits.cpuSecs).toBe(5)
      return spawnInBox({ ...start, limits: { ...start.limits, cpuSecs } }, events)
    }
    // On a busy machine seconds of CPU time can take long; what is meant to end these is not the clock.
    opened = await openStore({ spawn: hasty, limits: { admissionSecs: 90 } })
  })
  afterAll(async () => await opened.close())

  test.each([
    [
      'too much JavaScript',
      tupleBomb(15),
      /becomes \d+ bytes of JavaScript; 8388608 bytes \(BRAIN_MAX_TRANSPILED_BYTES\)/,
      5,
    ],
    ['too much CPU time', resultBomb(18), /more than 5 seconds of CPU time/, soakOr(5, 2)],
  ])('is refused, and leaves the next one alone: %s', async (what, bytes, reason, seconds) => {
    const before = await opened.paths()
    cpuSecs = seconds
    const refused = await refusalOf(opened.admit(toBuffer(bytes)))
    cpuSecs = 5
    expect(refused).toMatchObject({ code: 'invalid_request', fault: 'too_complex' })
    expect(refused.message).toMatch(reason)
    expect(await opened.paths()).toEqual(before)
    const next = good(100 + what.length)
    expect((await opened.admit(next)).id).toBe(idOf(next))
  })

  test('is refused when it takes too much memory', async () => {
    const small: SpawnChild = (start, events) =>
      spawnInBox({ ...start, limits: { ...start.limits, dataBytes: 700 * 1024 * 1024 } }, events)
    const tight = await openStore({ spawn: small, limits: { admissionSecs: 90 } })
    const refused = await refusalOf(tight.admit(toBuffer(tupleBomb(18))))
    expect(refused).toMatchObject({ code: 'invalid_request' })
    expect(refused.message).toMatch(/memory|cannot translate|CPU time|BRAIN_MAX_TRANSPILED_BYTES/)
    expect((await tight.admit(good(0))).bytes).toBeGreaterThan(0)
    await tight.close()
  })

  test('is refused when it takes too long, naming the limit', async () => {
    const quick = await openStore({ limits: { admissionSecs: 1 } })
    const start = performance.now()
    const refused = await refusalOf(quick.admit(toBuffer(resultBomb(18))))
    expect(refused).toMatchObject({ code: 'invalid_request', fault: 'too_complex' })
    expect(refused.message).toMatch(/longer than 1 seconds \(BRAIN_MAX_ADMISSION_SECS\)/)
    expect(performance.now() - start).toBeLessThan(2500)
    await quick.close()
  })

  test('leaves the next one alone, again and again', async () => {
    // A hundred of other kinds are in http/hostile-uploads.
    const ROUNDS = 4
    // Good ones must come through on a busy machine: a second is not enough for that.
    const impatient = await openStore({ limits: { admissionSecs: 5, transpiledBytes: 256 * 1024 } })
    for (let round = 0; round < ROUNDS; round++) {
      expect(await refusalOf(impatient.admit(toBuffer(tupleBomb(10))))).toMatchObject({ fault: 'too_complex' })
      expect((await impatient.admit(good(round))).id).toBe(idOf(good(round)))
    }
    expect(await impatient.store.list('local')).toHaveLength(ROUNDS)
    await impatient.close()
  })

  test('2,000 functions are refused by the size of their JavaScript, and admitted where more is allowed', async () => {
    const many = toBuffer(toolComponent({ inExports: Array.from({ length: 2000 }, (_, i) => `more-${i}`) }))
    expect((await refusalOf(opened.admit(many))).message).toMatch(/BRAIN_MAX_TRANSPILED_BYTES/)
    const roomy = await openStore({ limits: { transpiledBytes: 16 * 1024 * 1024 } })
    expect((await roomy.admit(many)).id).toBe(idOf(many))
    await roomy.close()
  })
})

describe('names that run code (J1)', () => {
  const marker = 'BRAIN_TEST_PWNED'
  const run = `globalThis.${marker}=1`
  // Each fits the place in the generator's output where its sort of name lands.
  const property = `x': (${run}), 'y`
  const attacks = {
    export: toBuffer(toolComponent({ coreName: `x'];${run};['y` })),
    import: toBuffer(toolComponent({ coreImport: ['env', property] })),
    module: toBuffer(toolComponent({ coreImport: [property, 'give'] })),
  }

  test.each(Object.entries(attacks))('are refused by the gate: core %s', async (_which, bytes) => {
    const opened = await openStore()
    expect(await refusalOf(opened.admit(bytes))).toMatchObject({ code: 'invalid_request', fault: 'unsafe_name' })
    expect(opened.spawned()).toBe(0)
    await opened.close()
  })

  test.each(Object.entries(attacks))('are bytes to the server without the gate: core %s', async (_which, bytes) => {
    const settings = {
      transpiler: await loadTranspiler(),
      spawn: spawnInBox,
      limits: defaultLimits,
      signal: new AbortController().signal,
    }
    const made = await transpile(bytes, [], settings)
    // The attack is real: it is code in what came back. Nobody here evaluates that.
    const script = made.js.toString().replaceAll(/^export |import\.meta\.url/gm, '')
    expect(script).toContain(run)
    expect(() => new Script(script)).not.toThrow()
    expect(script.split(run)[0]).toMatch(/'x'(\];|: \()$/m)
    expect(globalThis).not.toHaveProperty(marker)
    const check = new ScriptCheck(settings)
    check.judge(made.js)
    const refused = await refusalOf(check.script)
    expect(refused).toMatchObject({ code: 'invalid_request', fault: 'cannot_transpile' })
    expect(refused.message).toContain('it uses the global "globalThis"')
  })
})

describe('a child that does not do its work', () => {
  const script =
    (source: string): SpawnChild =>
    (start, events) =>
      spawnInBox({ ...start, program: Buffer.from(source) }, events)
  const reply = (...frames: readonly string[]) =>
    script(`
      const fs = require('node:fs')
      const frame = (type, body) => {
        const head = Buffer.alloc(5); head.writeUInt32LE(body.length + 1); head[4] = type
        fs.writeSync(3, Buffer.concat([head, body]))
      }
      frame(1, Buffer.alloc(0))
      ${frames.join('\n')}
      process.exit(0)`)
  const OK = `frame(2, Buffer.from('export function instantiate(a, b) {}'))`
  const DONE = 'frame(4 + 1, Buffer.alloc(0))'

  test.each([
    ['says nothing and ends', script('process.exit(3)'), 'sandbox_unavailable', /exit code 3/],
    ['ends after its start', reply(), 'invalid_request', /exit code 0/],
    ['sends no script', reply(DONE), 'invalid_request', /made no JavaScript/],
    ['sends a frame of 4 GiB', reply(`fs.writeSync(3, Buffer.alloc(8, 255))`), 'invalid_request', /a frame of/],
    ['sends a frame of an unknown type', reply('frame(99, Buffer.alloc(3))'), 'invalid_request', /unknown frame/],
    [
      'sends a core of no module',
      reply(OK, `frame(3, Buffer.from([9, 0, 0, 0, 97]))`),
      'invalid_request',
      /named a core/,
    ],
    [
      'names a core ../a',
      reply(OK, `frame(3, Buffer.from([0, 0, 0, 0, 46, 46, 47, 97]))`),
      'invalid_request',
      /named a core/,
    ],
    [
      'names a core twice',
      reply(OK, `frame(3, Buffer.from([0, 0, 0, 0, 97]))`, `frame(3, Buffer.from([0, 0, 0, 0, 97]))`),
      'invalid_request',
      /named a core/,
    ],
    [
      'gives one core of the upload more names than it can be there times',
      reply(OK, `for (let i = 0; i < 20; i++) frame(3, Buffer.from([0, 0, 0, 0, 97 + i]))`, DONE),
      'invalid_request',
      /too many core modules/,
    ],
    [
      'sends a core whose name is longer than its frame',
      reply(OK, `frame(4, Buffer.from([255, 0, 0, 0, 97]))`, DONE),
      'invalid_request',
      /half a frame/,
    ],
    [
      'sends JavaScript of another shape',
      reply(`frame(2, Buffer.from('globalThis.x = 1'))`, DONE),
      'invalid_request',
      /something where it is loaded/,
    ],
    ['sends JavaScript that is not UTF-8', reply(`frame(2, Buffer.from([255]))`, DONE), 'invalid_request', /UTF-8/],
    [
      'sends JavaScript that imports',
      reply(`frame(2, Buffer.from('export function instantiate(a) { import("fs") }'))`, DONE),
      'invalid_request',
      /imports/,
    ],
    [
      'sends JavaScript whose syntax tree fills the memory',
      reply(`frame(2, Buffer.alloc(8 << 20, ';'))`, DONE),
      'invalid_request',
      /MiB to check/,
    ],
    [
      'sends JavaScript that is nested too deep',
      reply(`frame(2, Buffer.from('export function instantiate() {' + '('.repeat(1 << 20)))`, DONE),
      'invalid_request',
      /cannot be parsed/,
    ],
  ] as const)('is told apart: %s', async (_what, spawn, code, reason) => {
    const opened = await openStore({ spawn, limits: { admissionSecs: 90 } })
    const before = await opened.paths()
    const refused = await refusalOf(opened.admit(good(1)))
    expect(refused.code).toBe(code)
    expect(refused.message).toMatch(reason)
    expect(await opened.paths()).toEqual(before)
    await opened.close()
  })
})

test('admit() refuses where there is no sandbox, before it reads anything', async () => {
  const none = { ...level, name: 'none' as const, remarks: ['the kernel has no landlock'] }
  const opened = await openStore({ level: none })
  let read = 0
  async function* upload() {
    read++
    yield await Promise.resolve(good(1))
  }
  const refused = await refusalOf(opened.store.admit('local', upload()))
  expect(refused.code).toBe('sandbox_unavailable')
  expect(refused.message).toMatch(/no landlock.*BRAIN_ENV_UNSAFE=1/)
  expect(read).toBe(0)
  await opened.close()
})
