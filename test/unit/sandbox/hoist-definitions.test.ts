import { runInThisContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { finishScript } from '../../../src/sandbox/admission/script-check/finish-script.ts'
import { parseScript } from '../../../src/sandbox/admission/script-check/fault-of-script.ts'
import { plainScript } from '../../../src/sandbox/wire/plain-script.ts'
import * as hoisting from '../../../src/sandbox/admission/script-check/hoist-definitions.ts'

type Instance = { next(): unknown[] }
type Script = {
  readonly instantiate: (core: unknown, imports: unknown, instantiateCore: unknown) => Instance
  readonly release: (() => void) | undefined
}

function hoistDefinitions(module: string): string | undefined {
  const parsed = parseScript(module)
  if (typeof parsed === 'string') throw new SyntaxError(parsed)
  return hoisting.hoistDefinitions(parsed)
}

const evaluate = (script: string): Script =>
  runInThisContext(
    `(()=>{${script.replaceAll(/^export /gm, '')}\nreturn {instantiate,release:typeof release=='function'?release:undefined}})()`,
  ) as Script

/** As jco writes them: everything in `instantiate`, core instances in a generator, statements without semicolons. */
const SCRIPT = `"use components";
export function instantiate(getCoreModule, imports, instantiateCore = fallback) {
  const _debugLog = (...args) => { said.push(args) };
  const said = []
  let count = 10, unset
  const [{ step }, ...rest] = [imports, 'x']
  class Counter {
    static ONE = 1
    #at = count
    next() { _debugLog('next', { at: this.#at }); return this.#at += step }
  }
  function describe(value) { return instantiateCore(getCoreModule(rest[0]), value) }
  const kinds = new Map()
  if (kinds.size !== 0) throw new Error('an instance has the state of another')
  kinds.set('x', Counter.ONE)
  let gen = (function* _initGenerator() {
    let exports0
    const counter = new Counter()
    const trampoline0 = function () { return counter.next() }
    function run() { count++; return [trampoline0(), describe(exports0), count, kinds.size, said.length, unset] }
    exports0 = yield 'core'
    unset = step
    return { next: run }
  })()
  gen.next()
  return gen.next('given').value
}
export const _util = {};
`
const instance = (script: Script, step: number): Instance =>
  script.instantiate(
    (name: string) => `module ${name}`,
    { step },
    (module: string, value: string) => `${module}, ${value}`,
  )

describe('hoistDefinitions()', () => {
  it('gives a script that makes the same instances, one after the other, each with a state of its own', () => {
    const before = evaluate(SCRIPT)
    const after = evaluate(hoistDefinitions(SCRIPT) ?? '')
    for (const step of [2, 5]) {
      const [expected, actual] = [instance(before, step), instance(after, step)]
      for (const _ of [1, 2, 3]) {
        const [at, text, count, kinds, said, last] = expected.next()
        expect(actual.next()).toEqual([at, text, count, kinds, 0, last])
        expect(said).toBeGreaterThan(0)
      }
    }
  })

  it('moves functions, classes and constants out, once, and lets go of the rest on `release()`', () => {
    const text = hoistDefinitions(SCRIPT) ?? ''
    const entry = text.indexOf('function instantiate(')
    for (const definition of ['class Counter', 'function describe', 'function run', 'const trampoline0'])
      expect(text.indexOf(definition)).toBeLessThan(entry)
    expect(text.indexOf('new Map()')).toBeGreaterThan(entry)
    expect(text).not.toMatch(/^\s*_debugLog\(/m)
    const script = evaluate(text)
    const made = instance(script, 1)
    script.release?.()
    expect(() => made.next()).toThrow(TypeError)
  })

  it.each([
    ['no entry', 'export const run = 1'],
    ['an entry of another kind', 'export async function instantiate(a) {}'],
    ['a name of an inner scope twice', 'export function instantiate(a) { let b; let g = (function* () { let b })() }'],
    ['a name of the engine', 'export function instantiate(a) { let g = (function* () { class Map {} })(); new Map() }'],
    ['its own name', 'export function instantiate(a) { function release() {} }'],
    ['a name from outside', 'const b = 1\nexport function instantiate(a) { let b }'],
    ['a class that does something', 'export function instantiate(a) { class A { static b = a() } }'],
  ])('leaves a script with %s as it is', (_, script) => {
    expect(hoistDefinitions(script)).toBeUndefined()
  })
})

describe('finishScript()', () => {
  const inside = (code: string): string => `export function instantiate(a) { ${code} }\n`

  it('gives what hoisting made of a script without a fault', () => {
    const script = inside('const b = () => a; return b')
    expect(finishScript(script)).toEqual({ script: hoistDefinitions(script) })
  })

  it('gives a script as it is that is not understood', () => {
    const script = inside('function release() {}')
    expect(finishScript(script)).toEqual({ script })
  })

  it.each([
    ['it cannot be parsed', 'export function'],
    ['it cannot be parsed: Not enough stack', inside(`return ${'('.repeat(50_000)}`)],
    ['it ends before its end', `${inside('')}return {} })(); (function () {`],
    ['it uses the global "process"', inside('process.exit()')],
  ])('says: %s', (fault, script) => {
    expect(finishScript(script)).toEqual({ fault: expect.stringContaining(fault) })
  })

  it('judges a text that stays as it is where boxes make it plain again', () => {
    const parts = [
      'export ',
      'async ',
      'function ',
      'const ',
      'import.meta.url',
      'import.met',
      'a.url',
      '\n',
      '"',
      '`',
      'x',
    ]
    const [head = '', tail = ''] = plainScript('|').split('|')
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...parts)), (pieces) => {
        const plain = plainScript(pieces.join(''))
        expect(plainScript(plain.slice(head.length, plain.length - tail.length))).toBe(plain)
      }),
    )
  })
})
