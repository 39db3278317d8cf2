import { describe, expect, it } from 'vitest'
import * as script from '../../../src/sandbox/admission/script-check/fault-of-script.ts'

function faultOfScript(module: string): string | undefined {
  const parsed = script.parseScript(module)
  return typeof parsed === 'string' ? parsed : script.faultOfScript(parsed)
}

const ENTRY = 'export function instantiate(getCoreModule, imports, instantiateCore) { return {} }\n'
const inside = (code: string): string => `export function instantiate(a, b) { ${code} }\n`

describe('faultOfScript()', () => {
  it('accepts definitions of every sort that jco emits', () => {
    const script = `"use components";
let dv, gen;
const LIMIT = 2 ** 2 > 3 ? 1 : 0;
`
    expect(faultOfScript(`${script}${ENTRY}`)).toMatch(/something where it is loaded/)
    const definitions = `"use components";
let dv, gen;
const LIMIT = -1, NAME = 'x', EMPTY = \`text\`;
const view = (memory) => new DataView(memory.buffer);
const debug = (...args) => { if (!globalThis?.process?.env?.JCO_DEBUG) { return; } console.debug(...args); };
class Table { static FREE = Symbol('free'); static KIND = { a: 1 }; static ID = 0n; #at = view(dv); [Symbol.iterator]() {} constructor() { super_(this) } }
class Fault extends Error { constructor(value) { super(value) } }
function super_(value) { switch (value) { case 'constructor': return { [value]: value } } }
export const _util = { Table: () => Table, name: 'x' };
export function release() { dv = undefined; }
${ENTRY}`
    expect(faultOfScript(definitions)).toBeUndefined()
  })

  it.each([
    ['a global', 'process.exit()', /global "process"/],
    ['`require`', `require('fs')`, /global "require"/],
    ['`eval`', `eval('1')`, /global "eval"/],
    ['`Function`', `new Function('1')`, /global "Function"/],
    ['`Reflect`', 'Reflect.get(a, b)', /global "Reflect"/],
    ['an unknown member of the global object', 'globalThis.process.exit()', /global "globalThis"/],
    ['a computed member of the global object', `globalThis['WebAssembly']`, /global "globalThis"/],
    ['an unknown member of the console', 'console._stdout.fd', /global "console"/],
    ['the global object as it is', 'return globalThis', /global "globalThis"/],
    ['an assignment to a global', 'onmessage = 1', /global "onmessage"/],
    ['a global in a pattern', '[process] = a', /global "process"/],
    ['a global as a shorthand', 'return { process }', /global "process"/],
    ['a global in a template', '`${process}`', /global "process"/],
    ['a dynamic import', `import('fs')`, /it imports/],
    ['a member that is named', 'a.constructor', /property "constructor"/],
    ['an optional member', 'a?.constructor', /property "constructor"/],
    ['a member as a text', `a['constructor']`, /property "constructor"/],
    ['a member put together', `a['con' + \`struc\${'tor'}\`]`, /property "constructor"/],
    ['a member in a list', `a[['constructor']]`, /property "constructor"/],
    ['a member in escapes', 'a.\\u0063onstructor', /property "constructor"/],
    ['a member taken apart', 'const { constructor: c } = a', /property "constructor"/],
    ['a member taken apart by a text', `const { ['constr' + 'uctor']: c } = a`, /property "constructor"/],
    ['a prototype', 'a.__proto__', /property "__proto__"/],
    ['a descriptor', 'Object.getOwnPropertyDescriptor(a, b)', /getOwnPropertyDescriptor/],
    ['what called it', 'new.target', /what called it/],
    ['a debugger', 'debugger', /debugger/],
    ['a static block', 'class A { static { a() } }', /only defined/],
  ])('refuses %s in a function', (_what, code, reason) => {
    expect(faultOfScript(inside(code))).toMatch(reason)
  })

  it.each([
    ['another function declares', 'const f = (process) => process; return process'],
    ['a block declares', '{ let process; } return process'],
    ['the body declares, for a default', 'return function (x = process) { var process }'],
    ['a switch declares, for what it looks at', 'switch (process) { case 1: let process }'],
    ['a loop declares, after it', 'for (const process of a); return process'],
    ['a function expression is called, outside', 'const f = function process() {}; return process'],
    ['a class expression is called, outside', 'const f = class process {}; return process'],
    ['a catch binds, outside', 'try {} catch (process) {} return process'],
    ['an inner function declares with `var`', 'function f() { var process } return process'],
  ])('finds a global that %s', (_what, code) => {
    expect(faultOfScript(inside(code))).toMatch(/global "process"/)
  })

  it.each([
    ['a parameter', 'return (process) => process'],
    ['a pattern', 'const { x: [process = 1, ...rest] } = a; return [process, rest]'],
    ['`var` further down', 'process = 1; if (a) { for (;;) { var process } }'],
    ['a label', 'process: for (;;) break process'],
    ['a member', 'a.process = b.process'],
    ['a key', 'return { process: 1, process() {} }'],
    ['`arguments`', 'return function () { return arguments }'],
  ])('does not take %s for a global', (_what, code) => {
    expect(faultOfScript(inside(code))).toBeUndefined()
  })

  it.each([
    ['a call', 'a()'],
    ['a block', '{ }'],
    ['a value that is computed', 'const a = b()'],
    ['a value that is awaited', 'await 1'],
    ['an import', `import a from 'fs'`],
    ['a default export', 'export default 1'],
    ['a re-export', `export * from 'fs'`],
    ['a value of the module', 'const a = import.meta'],
    ['a static member that is computed', 'class A { static a = b() }'],
    ['a base class that is computed', 'class A extends b() {}'],
    ['a computed name', 'class A { [b()]() {} }'],
    ['an object with a value that is computed', 'const a = { b: c() }'],
    ['a pattern', 'const { a } = {}'],
    ['an early end', `return {} })(); process.exit(); (function () {`],
    ['an early return', 'return { instantiate }'],
    ['a second entry', 'function instantiate() {}'],
  ])('refuses %s where the script is loaded', (_what, code) => {
    expect(faultOfScript(`${ENTRY}${code}\n`)).toBeTypeOf('string')
  })

  it('refuses a script without an entry', () => {
    expect(faultOfScript('const run = 1')).toMatch(/one function "instantiate"/)
    expect(faultOfScript('')).toMatch(/one function "instantiate"/)
  })

  it('reads what a module has as code and a script as a comment the way a box does', () => {
    // To a module `<!--` is a comparison, and what follows a text; to a script it begins a comment.
    const hidden = inside('a <!--b; `\n;process.exit();\n<!-- `\n')
    expect(faultOfScript(hidden)).toMatch(/global "process"/)
  })

  it('gives a function that is called alone no global object as `this`', async () => {
    const { plainScript } = await import('../../../src/sandbox/wire/plain-script.ts')
    const { runInThisContext } = await import('node:vm')
    const script = `export function instantiate() { return [this, (() => this)(), (function () { return this })()] }\n`
    const made = runInThisContext(plainScript(script)) as { instantiate: () => unknown[] }
    const { instantiate } = made
    expect(instantiate()).toEqual([undefined, undefined, undefined])
  })

  it('answers or throws for nesting of any depth', () => {
    for (const deep of ['('.repeat(100_000), '['.repeat(100_000), `a${'+a'.repeat(100_000)}`, '{'.repeat(100_000)]) {
      let fault: string | undefined = ''
      try {
        fault = faultOfScript(inside(deep))
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError)
        continue
      }
      if (!deep.startsWith('a')) expect(fault).toMatch(/cannot be parsed/)
    }
  })
})
