import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { componentize } from 'componentize-qjs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ComponentId } from '../../src/kernel/ids.ts'
import { artifactDirectory, SCRIPT_FILE } from '../../src/sandbox/admission/artifact.ts'
import { type OpenedStore, openStore } from './admission-store.ts'
import { type Lab, openLab } from './lab.ts'

const wit = new URL('../../wit/tool.wit', import.meta.url).pathname

/** A QuickJS component of the tool world whose `run(input)` is the given body. */
async function quickJs(body: string): Promise<Buffer> {
  const jsSource = `import * as host from 'brain:tool/host@0.2.0'\nexport function run(input) {\n${body}\n}\n`
  const { component } = await componentize({ witPath: wit, jsSource, world: 'tool', sync: true })
  return component
}

let lab: Lab
let store: OpenedStore
beforeAll(async () => {
  const recovered: { ensure?: (id: ComponentId) => Promise<void> } = {}
  lab = await openLab({}, { recoverArtifact: (id) => recovered.ensure?.(id) ?? Promise.reject(new Error('not yet')) })
  store = await openStore({ directory: lab.data })
  recovered.ensure = (id) => {
    store.store.distrustArtifact(id)
    return store.store.ensureArtifact(id)
  }
})
afterAll(async () => {
  await store?.close()
  await lab?.[Symbol.asyncDispose]()
})

const admit = async (body: string): Promise<ComponentId> => (await store.admit(await quickJs(body))).id

describe('a component of a plain toolchain', () => {
  it('runs, calls its host and returns, again and again in one box', async () => {
    const id = await admit(`
      const { words } = JSON.parse(input.inputJson)
      const sequence = host.emit('counted', JSON.stringify(words.length))
      host.finish(JSON.stringify({ status: 'ok', value: { words: words.length, sequence: String(sequence), options: input.configurationJson, at: String(input.deadlineAtMs) } }))
      return ''`)
    for (let i = 0; i < 20; i++) {
      const calls: unknown[] = []
      const { end } = await lab.call(id, {
        input: JSON.stringify({ words: ['a', 'b'] }),
        configuration: '{"depth":2}',
        deadlineAtMs: 1_900_000_000_000,
        services: async (method, args) => (calls.push([method, ...args]), '41'),
      })
      expect(end).toEqual({ type: 'returned', text: '' })
      const value = { words: 2, sequence: '41', options: '{"depth":2}', at: '1900000000000' }
      expect(calls).toEqual([
        ['emit', 'counted', '2'],
        ['finish', JSON.stringify({ status: 'ok', value })],
      ])
    }
  })

  it('ends `failed` with the tool-error that it returns, and its box stays', async () => {
    const id = await admit(`throw { code: 'no_such_word', message: 'There is no "x"' }`)
    const first = await lab.call(id)
    expect(first.end).toMatchObject({ type: 'failed', code: 'no_such_word', message: 'There is no "x"' })
    expect((await lab.call(id)).end).toEqual(first.end)
  })

  it('that fails without a tool-error ends `trapped`, with nothing of ours in the text', async () => {
    const { end } = await lab.call(await admit(`null.property`))
    expect(end).toMatchObject({ type: 'trapped', code: 'tool_error' })
    expect(JSON.stringify(end)).not.toMatch(/node_modules|brain-sandbox|\/work|\/root/)
  })

  it('whose artifact was damaged is made again, and the call that met it works', async () => {
    const id = await admit(`return '"made again"'`)
    await lab.call(id)
    appendFileSync(join(artifactDirectory(lab.data, id), SCRIPT_FILE), '//')
    await using fresh = await openLab(
      {},
      {
        dataDirectory: lab.data,
        recoverArtifact: (component) => {
          store.store.distrustArtifact(component)
          return store.store.ensureArtifact(component)
        },
      },
    )
    expect((await fresh.call(id)).end).toEqual({ type: 'returned', text: '"made again"' })
  })

  it('whose first call comes in a warm box answers within 500 ms', async () => {
    const id = await admit(`return '1'`)
    const times: number[] = []
    for (let i = 0; i < 5; i++) {
      await new Promise((resolve) => setTimeout(resolve, 300)) // the box is warm, its spare is started
      const started = performance.now()
      await lab.call(id, { key: `first ${i}` })
      times.push(performance.now() - started)
    }
    expect(Math.min(...times)).toBeLessThan(500)
  })
})
