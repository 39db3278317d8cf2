import { readdir, readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test, type TestContext } from 'vitest'
import { BinaryReader } from '../../src/sandbox/admission/binary-reader.ts'
import { ComponentWalk } from '../../src/sandbox/admission/component-walk.ts'
import { readArtifact } from '../../src/sandbox/admission/artifact.ts'
import type { ComponentRole } from '../../src/sandbox/sandbox.ts'
import { COMPONENTS, fixture, javascriptComponent, pythonComponent } from '../fixtures/components.ts'
import { idOf, type OpenedStore, openStore } from './admission-store.ts'

const FAMILIAR =
  /^(?:brain:(?:tool|agentloop)\/(?:host|types)|wasi:(?:cli|clocks|filesystem|http|io|random|sockets)\/[a-z-]+)$/

let opened: OpenedStore
beforeAll(async () => {
  opened = await openStore({ limits: { admissionSecs: 90 } })
})
afterAll(async () => await opened.close())

async function admitted(path: string, role: ComponentRole = 'tool') {
  const bytes = await readFile(path)
  const component = await opened.admit(bytes, 'local', role)
  expect(component).toMatchObject({ id: idOf(bytes), role, bytes: bytes.length })
  for (const name of component.imports) expect(name).toMatch(FAMILIAR)
  return { bytes, component, artifact: await readArtifact(opened.directory, component.id) }
}

/** What a component exports; the gate's list of what toolchains add is made of these. */
function exportsOf(bytes: Buffer): readonly string[] {
  const walk = new ComponentWalk({ modules: 64, instances: 256, depth: 8 })
  const { exports } = walk.walk(new BinaryReader(bytes, 0, bytes.length))
  return exports.map(({ name, sort }) => `${sort} ${name}`)
}

/** Of all cores only those that the generator made itself may be no slice of the upload. */
const slices = (bytes: Buffer, cores: readonly { readonly bytes: Buffer }[]) =>
  cores.filter((core) => bytes.includes(core.bytes)).length

describe('Rust and hand-made components', async () => {
  const all = (await readdir(COMPONENTS)).filter((name) => name.endsWith('.wasm'))
  const names = all.filter((name) => name !== 'agentloop.wasm')

  test.each(names)('%s is admitted', async (name) => {
    const { bytes, artifact } = await admitted(`${COMPONENTS}/${name}`)
    expect(exportsOf(bytes)).toEqual(['function run'])
    expect(slices(bytes, artifact.cores)).toBe(artifact.cores.length)
  })

  test('an agentloop is admitted as one', async () => {
    const { bytes, component, artifact } = await admitted(fixture('agentloop'), 'agentloop')
    expect(exportsOf(bytes)).toEqual(['function turn'])
    expect(component.imports).toContain('brain:agentloop/host')
    expect(slices(bytes, artifact.cores)).toBe(artifact.cores.length)
  })

  test('metadata comes out of the core module into which Rust put it', async () => {
    const { component } = await admitted(fixture('wordcount'))
    expect(component.metadata).toMatchObject({ name: 'wordcount', input_schema: { type: 'object' } })
    expect(component.metadata?.description).toMatch(/words/)
  })
})

describe('JavaScript components', () => {
  test('of componentize-qjs are admitted, with their further export', async () => {
    const { bytes, component, artifact } = await admitted(await javascriptComponent('wordcount'))
    expect(exportsOf(bytes)).toEqual(['function init', 'function run'])
    expect(component.imports).toContain('wasi:random/insecure-seed')
    expect(slices(bytes, artifact.cores)).toBe(artifact.cores.length - 1) // the generator adds one
  })
})

describe('Python components', () => {
  test('of componentize-py are admitted, sockets and all', { timeout: 300_000 }, async (context: TestContext) => {
    const python = await pythonComponent('inspect')
    if (!python.built) {
      process.stderr.write(`NOT TESTED, no Python component: ${python.reason}\n`)
      context.skip(python.reason)
    }
    const { bytes, component, artifact } = await admitted(python.component)
    expect(exportsOf(bytes)).toEqual(['instance exports', 'function run'])
    expect(component.imports).toContain('wasi:sockets/ip-name-lookup')
    expect(component.metadata).toMatchObject({ name: 'inspect' })
    expect(artifact.cores).toHaveLength(14)
    expect(slices(bytes, artifact.cores)).toBe(14)
  })
})
