import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { componentize } from 'componentize-qjs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { defaultLimits } from '../../src/contract/limits.ts'
import type { ComponentId } from '../../src/kernel/ids.ts'
import { artifactDirectory, SCRIPT_FILE } from '../../src/sandbox/admission/artifact.ts'
import { openProcessSandbox } from '../../src/sandbox/process-sandbox.ts'
import type { InvocationEnd, Sandbox } from '../../src/sandbox/sandbox.ts'
import { custom, module, toBuffer, toolComponent } from '../fixtures/wasm-builder.ts'
import { level, type OpenedStore, openStore, refusalOf } from './admission-store.ts'

const tool = (number: number): Buffer => toBuffer(toolComponent({ after: [custom('number', String(number))] }))

let opened: OpenedStore
let sandbox: Sandbox
beforeAll(async () => {
  opened = await openStore()
  sandbox = await openProcessSandbox({
    dataDirectory: opened.directory,
    limits: { ...defaultLimits, warmBoxes: 1 },
    level,
  })
})
afterAll(async () => {
  await sandbox[Symbol.asyncDispose]()
  await opened.close()
})

async function run(component: ComponentId): Promise<InvocationEnd> {
  const execution = sandbox.invoke(
    {
      key: `key ${component}`,
      owner: 'owner',
      component,
      entry: { role: 'tool', input: '{}', configuration: 'null', deadlineAtMs: 0 },
      deadlineInMs: 60_000,
      mounts: [],
      secrets: {},
      network: [],
    },
    { call: () => Promise.reject(new Error('this tool calls nothing')) },
  )
  return (await execution.ended).end
}

test('after every sort of bad upload a good one is admitted and runs', async () => {
  const valid = tool(1)
  const outermost = Buffer.concat([valid, Buffer.from([0, 5, 1, 97])]) // a last section that claims more than there is
  const uploads = [
    Buffer.alloc(0),
    toBuffer(module()),
    toBuffer(toolComponent({ exportName: 'turn' })),
    valid.subarray(0, valid.length / 2),
    outermost,
    Buffer.from('hello'),
  ]
  const faults: unknown[] = []
  for (const upload of uploads) faults.push((await refusalOf(opened.admit(upload))).fault)
  expect(faults).toEqual(['empty', 'core_module', 'wrong_world', 'malformed', 'malformed', 'not_wasm'])
  expect(await opened.store.list('local')).toEqual([])
  const { id } = await opened.admit(valid)
  expect(await run(id)).toEqual({ type: 'returned', text: '' })
})

test('an artifact that is lost is a refused call, and made again it runs', async () => {
  const { id } = await opened.admit(tool(2))
  await rm(join(artifactDirectory(opened.directory, id), SCRIPT_FILE))
  expect(await run(id)).toMatchObject({ type: 'refused', code: 'environment_not_ready' })
  opened.store.distrustArtifact(id)
  await opened.store.ensureArtifact(id)
  expect(await run(id)).toEqual({ type: 'returned', text: '' })
})

const INHERITED = ['to-string', 'value-of', 'has-own-property', 'is-prototype-of', 'to-json', 'define-getter', 'then']

/** A tool of QuickJS that also exports what `exports` declares. */
async function declaring(exports: string): Promise<Buffer> {
  const directory = await mkdtemp(join(tmpdir(), 'brain-names-'))
  try {
    const wit = await readFile(new URL('../../wit/tool.wit', import.meta.url), 'utf8')
    await writeFile(
      join(directory, 'tool.wit'),
      wit.replace('export run', `export exports: interface { ${exports} }\nexport run`),
    )
    const jsSource =
      "export const exports = new Proxy({}, { get: () => () => {} })\nexport function run() { return '' }"
    return Buffer.from((await componentize({ witPath: directory, world: 'tool', sync: true, jsSource })).component)
  } finally {
    await rm(directory, { recursive: true })
  }
}

test('names that every object inherits may be those of fields, flags, cases and functions, and do no harm', async () => {
  const [fields, flags, cases] = [': string', '', '(u32)'].map((of) =>
    INHERITED.map((name) => `%${name}${of}`).join(', '),
  )
  const types = `record all { ${fields} } flags some { ${flags} } variant one { %constructor(u32), ${cases} }`
  const functions = INHERITED.map((name) => `%${name}: func(a: all, b: some) -> one;`).join(' ')
  const { id } = await opened.admit(await declaring(`${types} ${functions}`))
  expect(await run(id)).toEqual({ type: 'returned', text: '' })
})

test.each([
  ['a field', 'record one { %constructor: string } give: func(a: one) -> one;'],
  ['a flag', 'flags one { %constructor } give: func(a: one) -> one;'],
  ['a function', '%constructor: func();'],
])('`constructor` is refused as the name of %s, saying why', async (_what, declared) => {
  const refused = await refusalOf(opened.admit(await declaring(declared)))
  expect(refused.fault).toBe('cannot_transpile')
  expect(refused.message).toMatch(
    /it names the property "constructor", by which JavaScript reaches what makes code of text\. Rename/,
  )
})
