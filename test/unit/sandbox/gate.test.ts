import { describe, expect, test } from 'vitest'
import { BrainError } from '../../../src/kernel/errors.ts'
import { gate, type Gated } from '../../../src/sandbox/admission/gate.ts'
import { TOOLCHAIN_EXPORTS } from '../../../src/sandbox/admission/toolchain-exports.ts'
import {
  component,
  custom,
  FIRST_EXTRA_TYPE,
  join,
  leb,
  list,
  module,
  MODULE_PREAMBLE,
  section,
  STRING,
  text,
  toBuffer,
  toolComponent,
  tuple,
  type Bytes,
} from '../../fixtures/wasm-builder.ts'

const LIMITS = { coreInstances: 256 }

function refusalOf(bytes: Uint8Array): { fault: unknown; offset: unknown; message: string } {
  try {
    gate(bytes, LIMITS)
  } catch (error) {
    if (!(error instanceof BrainError)) throw error
    expect(error.code).toBe('invalid_request')
    const { fault, offset } = error.details as { fault?: unknown; offset?: unknown }
    return { fault, offset, message: error.message }
  }
  throw new Error('it was not refused')
}
const refused = (bytes: Bytes) => refusalOf(toBuffer(bytes))
const accepted = (bytes: Bytes): Gated => gate(toBuffer(bytes), LIMITS)

const RUN = join([0], text('run'), [1, 0, 0])
/** A component of the right export and whatever sections; the gate does not resolve indices of functions. */
const tool = (...sections: readonly Bytes[]): Bytes => component(...sections, section(11, list([RUN])))
const imports = (...items: readonly Bytes[]): Bytes => section(10, list(items))
const instance = (name: string): Bytes => join([0], text(name), [5, 0])
const nested = (depth: number): Bytes => (depth === 0 ? component() : component(section(4, nested(depth - 1))))

describe('what sort of bytes', () => {
  test.each([
    ['an empty body', '', 'empty', /empty/],
    ['text', 'hello', 'not_wasm', /not WebAssembly/],
    ['a zip', 'PK\u0003\u0004 and more', 'not_wasm', /archive/],
    ['three bytes of the magic number', '\0as', 'not_wasm', /not WebAssembly/],
    ['the magic number alone', '\0asm', 'malformed', /cut off/],
    ['an old draft of components', '\0asm\u000c\0\u0001\0', 'malformed', /current toolchain/],
    ['an empty core module', '\0asm\u0001\0\0\0', 'core_module', /wasm32-wasip2.*wasm-tools component new/],
  ])('gate() refuses %s', (_what, content, fault, reason) => {
    const seen = refusalOf(Buffer.from(content, 'latin1'))
    expect(seen.fault).toBe(fault)
    expect(seen.message).toMatch(reason)
  })

  test('gate() accepts a tool and says what it imports', () => {
    const gated = accepted(toolComponent())
    expect(gated.imports).toEqual(['brain:tool/types'])
    expect(gated.modules).toHaveLength(1)
    const [place] = gated.modules
    const bytes = toBuffer(toolComponent())
    expect([...bytes.subarray(place!.offset, place!.offset + 8)]).toEqual(MODULE_PREAMBLE)
    expect(place!.offset + place!.size).toBeLessThan(bytes.length)
  })

  test('gate() refuses a tool cut anywhere, with the place', () => {
    const bytes = toBuffer(toolComponent())
    for (let length = 8; length < bytes.length; length++) {
      const seen = refusalOf(bytes.subarray(0, length))
      // Cut between two sections, what is left is well formed, and lacks its export.
      expect(['malformed', 'wrong_world']).toContain(seen.fault)
      if (seen.fault === 'malformed') expect(seen.offset).toBeTypeOf('number')
    }
  })

  test('gate() refuses an outermost section that claims one byte too many', () => {
    const bytes = toBuffer(tool())
    const at = 9 // the length of the export section, the only one
    bytes[at]! += 1
    expect(refusalOf(bytes)).toMatchObject({ fault: 'malformed', offset: 10 })
  })
})

describe('the world', () => {
  const SORT = { function: 1, type: 3, instance: 5 } as const

  test('gate() names the missing export and what there is instead', () => {
    const seen = refused(component(section(11, list([join([0], text('start'), [1, 0, 0])]))))
    expect(seen).toMatchObject({ fault: 'wrong_world' })
    expect(seen.message).toMatch(
      /no export "run": it exports "start"\. Build it for the world brain:tool\/tool@0\.2\.0/,
    )
  })

  const importing = (name: string) => section(10, list([join([0], text(name), [5, 0])]))
  const entry = (name: string) => section(11, list([join([0], text(name), [SORT.function, 0, 0])]))
  const loop = (name: string) => toBuffer(component(importing(name), entry('turn')))

  test('gate() accepts an agentloop that asks for its own host, and no other', () => {
    expect(gate(loop('brain:agentloop/host@0.2.0'), LIMITS, 'agentloop').imports).toEqual(['brain:agentloop/host'])
    expect(() => gate(loop('brain:tool/host@0.2.0'), LIMITS, 'agentloop')).toThrow(/"brain:tool\/host@0\.2\.0"/)
    expect(() => gate(loop('brain:agentloop/host@0.1.0'), LIMITS, 'agentloop')).toThrow(/agentloop\/host@0\.1\.0/)
  })

  test('gate() tells the two apart that are sent as each other', () => {
    expect(refused(component(entry('turn'))).message).toMatch(/it is an agentloop, not a tool.*POST \/v1\/agentloops/)
    expect(() => gate(toBuffer(component(entry('run'))), LIMITS, 'agentloop')).toThrow(
      /it is a tool, not an agentloop.*POST \/v1\/tools/,
    )
  })

  test('gate() refuses a component that would be both', () => {
    const both = component(section(11, list([RUN, join([0], text('turn'), [SORT.function, 0, 0])])))
    expect(refused(both).message).toContain('it exports the function "turn". A tool exports "run"')
    expect(() => gate(toBuffer(both), LIMITS, 'agentloop')).toThrow(/the function "run"\. An agentloop exports "turn"/)
  })

  test('gate() says that a component exports nothing', () => {
    expect(refused(component()).message).toMatch(/no export "run": it exports nothing/)
  })

  test.each([
    ['no parameter', [], '()->result<string,record{code:string,message:string}>'],
    ['a string', [['text', STRING]], '(string)->result<string,record{code:string,message:string}>'],
    ['the error instead of the invocation', [['input', [2]]], '(record{code:string,message:string})->'],
    [
      'two parameters',
      [
        ['input', [1]],
        ['more', [0x79]],
      ],
      ',u32)->result<',
    ],
  ] as [string, [string, Bytes][], string][])(
    'gate() refuses a `run` with %s, showing its type',
    (_what, parameters, type) => {
      const seen = refused(toolComponent({ parameters }))
      expect(seen.fault).toBe('wrong_world')
      expect(seen.message).toContain(type)
      expect(seen.message).toContain('(record{input-json:string,configuration-json:string,deadline-at-ms:u64})->')
    },
  )

  test('gate() does not judge the type of a `run` that it cannot follow', () => {
    const doubled = (levels: number) => {
      const inner = (level: number) => (level === 0 ? STRING : leb(FIRST_EXTRA_TYPE + level - 1))
      const extraTypes = Array.from({ length: levels }, (_, level) => tuple([inner(level), inner(level)]))
      return toolComponent({ extraTypes, parameters: [['input', leb(FIRST_EXTRA_TYPE + levels - 1)]] })
    }
    expect(refused(doubled(1)).message).toContain('tuple<')
    expect(accepted(doubled(30)).imports).toEqual(['brain:tool/types'])
  })

  test('gate() names an export `run` of another sort', () => {
    const seen = refused(component(section(11, list([join([0], text('run'), [5, 0, 0])]))))
    expect(seen.message).toMatch(/its export "run" is no function \(its sort is "instance"\)/)
    expect(seen.fault).toBe('wrong_world')
  })

  test.each([
    ['wasi:cli/stdout@0.2.0', true],
    ['wasi:sockets/tcp@0.2.12', true],
    ['wasi:http/outgoing-handler@0.2.3', true],
    ['brain:tool/host@0.2.0', true],
    ['brain:tool/host@0.1.0', false],
    ['brain:tool/host', false],
    ['brain:tool/secrets@0.2.0', false],
    ['wasi:cli/stdout@0.3.0', false],
    ['wasi:cli/stdout@0.2.0-rc-2023-11-10', false],
    ['wasi:cli/stdout', false],
    ['wasi:cli/run@0.2.0', false],
    ['wasi:http/incoming-handler@0.2.0', false],
    ['wasi:nn/graph@0.2.0', false],
    ['wasi:threads/spawn@0.2.0', false],
    ['jco:node/fs', false],
    ['constructor', false],
    ['__proto__', false],
    ['url=<https://example.org/x.wasm>', false],
    ['unlocked-dep=<a:b@{>=1.0.0}>', false],
    ['integrity=<sha256-abc>', false],
  ])('gate() on an import of %s: %s', (name, allowed) => {
    const bytes = tool(imports(instance(name)))
    if (allowed) expect(accepted(bytes).imports).toEqual([name.replace(/@.*/, '')])
    else {
      const seen = refused(bytes)
      expect(seen.fault).toBe('refused_import')
      expect(seen.message).toContain(JSON.stringify(name))
    }
  })

  test('gate() refuses a function and a resource as imports', () => {
    expect(refused(tool(imports(join([0], text('log'), [1, 0]))))).toMatchObject({ fault: 'refused_import' })
    expect(refused(tool(imports(join([0], text('log'), [1, 0])))).message).toMatch(/the function "log"/)
  })

  test('gate() lists an interface once that is imported in two versions', () => {
    const both = imports(instance('wasi:io/poll@0.2.0'), instance('wasi:io/poll@0.2.6'))
    expect(accepted(tool(both)).imports).toEqual(['wasi:io/poll'])
  })

  const exporting = (name: string, sort: keyof typeof SORT) =>
    component(section(11, list([RUN, join([0], text(name), [SORT[sort], 0, 0])])))

  test.each([
    ['init', 'function'],
    ['exports', 'instance'],
    ['wasi:cli/run@0.2.6', 'instance'],
  ] as const)('gate() accepts the further export %s, which a toolchain adds', (name, sort) => {
    expect(accepted(exporting(name, sort)).imports).toEqual([])
    const listed = TOOLCHAIN_EXPORTS.filter((known) => name.replace(/@.*/, '') === known.name)
    expect(listed).toEqual([expect.objectContaining({ sort })])
  })

  test('gate() has no more such exports than those above', () => {
    expect(TOOLCHAIN_EXPORTS).toHaveLength(3)
  })

  test.each([
    ['helper', 'function'],
    ['Init', 'function'],
    ['init', 'instance'],
    ['exports', 'function'],
    ['memory', 'instance'],
    ['invocation', 'type'],
    ['constructor', 'function'],
    ['to-string', 'function'],
    ['wasi:cli/run', 'instance'],
    ['wasi:cli/run@0.2.6-rc', 'instance'],
    ['wasi:cli/run@0.3.0', 'instance'],
    ['wasi:cli/run@0.2.6', 'function'],
    ['wasi:cli/runner@0.2.6', 'instance'],
    ['wasi:http/incoming-handler@0.2.10', 'instance'],
    ['brain:tool/types@0.2.0', 'instance'],
    ['acme:db/sql@1.0.0', 'instance'],
    ['url=<https://example.org/x.wasm>', 'instance'],
  ] as const)('gate() refuses the further export %s (%s), naming it', (name, sort) => {
    const seen = refused(exporting(name, sort))
    expect(seen).toMatchObject({ fault: 'wrong_world', offset: expect.any(Number) })
    expect(seen.message).toContain(`it exports the ${sort} ${JSON.stringify(name)}. A tool exports "run"`)
  })

  test('gate() names five of many further exports', () => {
    const seen = refused(toolComponent({ moreExports: Array.from({ length: 1999 }, (_, i) => `more-${i}`) }))
    expect(seen.fault).toBe('wrong_world')
    expect(seen.message).toContain('"more-0", the function "more-1"')
    expect(seen.message).toContain('"more-4", …. A tool')
  })

  test('gate() refuses an export `then`', () => {
    const seen = refused(component(section(11, list([RUN, join([0], text('then'), [1, 0, 0])]))))
    expect(seen).toMatchObject({ fault: 'unsafe_name' })
  })
})

describe('names that become JavaScript', () => {
  const hostile = ["x']", 'x"', 'x`', 'x\\', 'a${b}', 'a*/b', 'a\nb', 'é', '\u2028', '\u0000', '\u007f']

  test.each(hostile)('gate() refuses %j as a name of a core export, import, alias and inline export', (name) => {
    const exported = section(1, module(section(7, list([join(text(name), [0, 0])]))))
    const importedModule = section(1, module(section(2, list([join(text(name), text('x'), [0, 0])]))))
    const importedField = section(1, module(section(2, list([join(text('x'), text(name), [0, 0])]))))
    const alias = section(6, list([join([0, 0, 1, 0], text(name))]))
    const inline = section(2, list([join([1], list([join(text(name), [0, 0])]))]))
    const argument = section(2, list([join([0, 0], list([join(text(name), [0x12, 0])]))]))
    for (const bytes of [exported, importedModule, importedField, alias, inline, argument]) {
      expect(refused(tool(bytes)).fault).toBe('unsafe_name')
      expect(refused(tool(section(4, component(bytes)))).fault).toBe('unsafe_name')
    }
  })

  test('gate() prints foreign names on one line, shortened', () => {
    const seen = refused(tool(section(1, module(section(7, list([join(text('\u001b[31m\n'.repeat(500)), [0, 0])]))))))
    expect(Buffer.from(seen.message).every((byte) => byte >= 0x20)).toBe(true)
    expect(seen.message.length).toBeLessThan(400)
  })

  test('gate() accepts the names that toolchains use', () => {
    const names = ['$imports', '[resource-drop]output-stream', 'wasi:io/poll@0.2.0', '', 'cabi_post_run', 'a#b', '0']
    const bytes = section(1, module(section(7, list(names.map((name) => join(text(name), [0, 0]))))))
    expect(accepted(tool(bytes)).modules).toHaveLength(1)
  })

  test('gate() refuses names of more than 4096 bytes and names that are not UTF-8', () => {
    const long = section(1, module(section(7, list([join(text('a'.repeat(4097)), [0, 0])]))))
    expect(refused(tool(long)).fault).toBe('too_complex')
    const broken = [1, 0xff]
    expect(refused(tool(section(1, module(section(7, list([join(broken, [0, 0])])))))).fault).toBe('unsafe_name')
    expect(refused(tool(imports(join([0], broken, [5, 0])))).fault).toBe('malformed')
  })
})

describe('features that a box does not bear', () => {
  const memories = (...limits: readonly Bytes[]) => section(1, module(section(5, list(limits))))
  const importedMemory = (limits: Bytes) => section(2, list([join(text('a'), text('b'), [2], limits)]))

  test.each([
    ['a shared memory', memories([3, 1, 1]), /shared memory/],
    ['a 64-bit memory', memories([4, 1]), /64-bit memory/],
    ['two memories', memories([0, 1], [0, 1]), /more than one memory/],
    ['a memory with another page size', memories([8, 1, 0]), /unknown kind of memory/],
    ['an imported shared memory', section(1, module(importedMemory([3, 1, 1]))), /shared memory/],
    ['an imported 64-bit memory', section(1, module(importedMemory([5, 1, 1]))), /64-bit memory/],
    [
      'an imported memory beside its own',
      section(1, module(importedMemory([0, 1]), section(5, list([[0, 1]])))),
      /more than one memory/,
    ],
    ['a core module as an import', imports(join([0], text('m'), [0, 0x11, 0])), /core module "m"/],
    ['a component as an import', imports(join([0], text('c'), [4, 0])), /component "c"/],
    ['a value as an import', imports(join([0], text('v'), [2, 1], STRING)), /value "v"/],
    [
      'the same inside a nested component',
      section(4, component(imports(join([0], text('c'), [4, 0])))),
      /component "c"/,
    ],
    ['a start function', section(9, [0, 0, 0]), /start function/],
    ['values', section(12, [0]), /values/],
    ['an export of a core module', section(11, list([join([0], text('m'), [0, 0x11, 0, 0])])), /export "m"/],
    ['an export of a component', section(11, list([join([0], text('m'), [4, 0, 0])])), /export "m"/],
    ['a component out of an instance', section(6, list([join([4, 0, 0], text('c'))])), /taken from an instance/],
    ['a name with attributes', imports(join([2], text('a:b/c'), [0], [5, 0])), /name with attributes/],
  ])('gate() refuses %s', (_what, bytes, reason) => {
    const seen = refused(tool(bytes))
    expect(seen.fault).toBe('unsupported_feature')
    expect(seen.message).toMatch(reason)
  })
})

describe('bombs', () => {
  test('gate() accepts components nested 8 deep and refuses 9', () => {
    expect(accepted(tool(section(4, nested(6)))).modules).toEqual([])
    expect(refused(tool(section(4, nested(7)))).fault).toBe('too_complex')
  })

  test('gate() accepts 64 core modules and refuses 65', () => {
    const modules = (count: number) => Array.from({ length: count }, () => section(1, module()))
    expect(accepted(tool(...modules(64))).modules).toHaveLength(64)
    expect(refused(tool(...modules(65))).fault).toBe('too_complex')
  })

  test('gate() counts instances as often as they are made, not as often as they are written', () => {
    const inner = component(section(1, module()), section(2, list(Array.from({ length: 9 }, () => [0, 0, 0]))))
    const times = (count: number) => section(5, list(Array.from({ length: count }, () => [0, 0, 0])))
    const outer = (count: number) => tool(section(4, inner), times(count)) // 1 + count × (1 + 9)
    expect(accepted(outer(25)).modules).toHaveLength(1)
    const seen = refused(outer(26))
    expect(seen.fault).toBe('too_complex')
    expect(seen.message).toContain('BRAIN_MAX_CORE_INSTANCES')
  })

  test('gate() refuses the 1.3 kB component whose nested instances take the generator half a minute', () => {
    const twice = section(5, list(Array.from({ length: 8 }, () => [0, 0, 0])))
    let bomb = component(section(1, module()), section(2, list([[0, 0, 0]])))
    for (let level = 0; level < 6; level++) bomb = component(section(4, bomb), twice)
    expect(refused(tool(section(4, bomb), twice)).fault).toBe('too_complex')
  })

  test('gate() follows a component that is aliased from outside', () => {
    const heavy = component(section(1, module()), section(2, list(Array.from({ length: 200 }, () => [0, 0, 0]))))
    const alias = section(6, list([[4, 2, 1, 0]])) // outer, one level up, component 0
    const inner = component(alias, section(5, list([[0, 0, 0]])))
    const bytes = tool(
      section(4, heavy),
      section(4, inner),
      section(
        5,
        list([
          [0, 1, 0],
          [0, 1, 0],
        ]),
      ),
    )
    expect(refused(bytes).fault).toBe('too_complex')
    expect(refused(tool(section(6, list([[4, 2, 3, 0]])))).fault).toBe('malformed')
  })

  test('gate() refuses more than 4096 exports', () => {
    const exports = Array.from({ length: 4096 }, (_, i) => join([0], text(`e${i}`), [1, 0, 0]))
    expect(refused(component(section(11, list([RUN, ...exports])))).fault).toBe('too_complex')
    expect(refused(component(section(11, list([RUN, ...exports.slice(1)])))).fault).toBe('wrong_world')
  })

  test.each([
    ['empty sections', [7, 0]],
    ['custom sections', [0, 2, 1, 97]],
    ['aliases', [6, 5, 1, 3, 2, 0, 0]],
  ])('gate() stops early in 32 MiB of %s', (_what, pattern) => {
    const bytes = Buffer.concat([toBuffer(component()), Buffer.alloc(32 * 1024 * 1024, Buffer.from(pattern))])
    const start = performance.now()
    expect(refusalOf(bytes).fault).toBe('too_complex')
    expect(performance.now() - start).toBeLessThan(2000)
  })

  test('gate() does not believe counts', () => {
    for (const id of [2, 5, 6, 10, 11]) {
      const seen = refused(tool(section(id, leb(0xffff_ffff))))
      expect(seen.fault).toBe('malformed')
    }
  })
})

describe('custom sections', () => {
  const section0 = custom('brain:tool-metadata', 'outer')
  const inModule = section(1, module(custom('brain:tool-metadata', 'inner')))

  test('gate() takes the metadata of the outermost component, wherever it stands', () => {
    expect(Buffer.from(accepted(tool(inModule, section0)).metadata!).toString()).toBe('outer')
    expect(Buffer.from(accepted(join(tool(inModule), section0)).metadata!).toString()).toBe('outer')
  })

  test('gate() takes the metadata of a core module when there is no other', () => {
    expect(Buffer.from(accepted(tool(inModule)).metadata!).toString()).toBe('inner')
    expect(accepted(tool(custom('producers', 'x'))).metadata).toBeUndefined()
  })
})
