import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { buildTools } from '../../src/authoring/build/build-tools.ts'
import { Brain, brainEnv, component, tool, toolMetadata } from '../../src/sdk/index.ts'
import type { SessionHandle, ToolCallAnswer } from '../../src/sdk/index.ts'
import type { BuiltTool } from '../../src/authoring/build/tool-builder.ts'
import { casesOfConformance, conform } from '../fixtures/guests-ts/conformance/tool.ts'
import { embeddedMetadata } from '../fixtures/reference/tool-metadata.ts'
import { startServer, type TestServer } from '../support/server.ts'

const SOURCE = join(import.meta.dirname, '../fixtures/guests-ts/conformance/tool.ts')

let folder: string
let built: readonly BuiltTool[]
let server: TestServer
let brain: Brain
let session: SessionHandle

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'brain-typescript-'))
  built = await buildTools(SOURCE, { outDirectory: folder, onProgress: () => {}, env: process.env })
  const implementationOf = (name: string) => {
    const file = built.find((one) => one.name === name)?.component
    if (file === undefined) throw new Error(`${name} was not built`)
    return component(pathToFileURL(file))
  }
  server = await startServer({ BRAIN_MAX_EMITTED_BYTES: '20000' })
  brain = new Brain({ baseUrl: server.url })
  const env = brainEnv({ name: 'box' })
  const input = z.object({}).loose()
  const inComponent = (name: string, of: string, options: z.ZodType<unknown, object>) =>
    tool({ name, description: 'As it was built.', input, options, implementation: implementationOf(of) })
  const options = { prefix: 'p:', nested: { n: 2 } }
  session = await brain.sessions.create({
    model: { provider: 'scripted', name: 'script', apiKey: 'none', script: [{ text: 'hello' }] },
    tools: [
      conform(options),
      inComponent('component', 'conform', z.object({}).loose())({ env, ...options }),
      inComponent('alone', 'alone', z.object({}))({ env }),
    ],
  })
})
afterAll(async () => {
  await brain?.close()
  await server?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

/** What came of a call, without what is another number every time. */
async function told(name: string, input: object): Promise<object> {
  const { sequence, ...answer } = (await session.call(name, input as never, {
    deadlineMs: 30_000,
    wait: 'finished',
  })) as ToolCallAnswer
  const records: unknown[] = []
  for await (const { sequence: at, type, data, origin } of session.events(sequence)) {
    if (origin?.['sequence'] !== sequence) continue
    records.push({
      type,
      data: JSON.parse(JSON.stringify(data), (key, value: unknown) =>
        /sequence$|_id$|^id$|_ms$|_at$/.test(key) ? 0 : value,
      ) as unknown,
    })
    expect(at).toBeGreaterThan(sequence)
  }
  const { results, outcome, finished } = answer
  return {
    outcome,
    finished,
    results: results.map(({ output, is_error, content }) => ({ output, is_error, content })),
    records,
  }
}

describe('one source as an application tool and as a component', () => {
  it.each(casesOfConformance)('comes to the same: %s', async (name) => {
    const [application, built] = [await told('conform', { case: name }), await told('component', { case: name })]
    expect(built).toEqual(application)
  })

  it('does what the cases are for', async () => {
    const valueOf = async (name: string) => {
      const { results } = await session.call('component', { case: name }, { wait: 'finished' })
      return (results.at(-1)?.output as { value: unknown } | undefined)?.value
    }
    const order = (await valueOf('order')) as string[]
    expect([order.slice(0, 3), order.slice(-2)]).toEqual([
      ['async starts', 'sync', 'microtask'],
      ['timer 1', 'timer 2'],
    ])
    expect(await valueOf('iterators')).toEqual([1, 2, 3, 'a', 'b', 1, 2, { value: 'counted', done: true }])
    expect(await valueOf('web')).toEqual([
      [97, 195, 169, 240, 159, 152, 128, 239, 191, 189],
      'a\ufffdA\ufffd',
      ['1970-01-01T00:00:00.000Z', [1], 1, 'x', true],
      true,
      true,
      true,
      true,
      ['aGk=', 'hi'],
      'function',
      'é',
    ])
  })

  it.each([
    { case: 'input', n: '7', text: '  x ' },
    { case: 'input', n: 'seven' },
    { case: 'input', text: 'bad' },
    { case: 'no such case' },
  ])('parses input alike: %o', async (input) => {
    expect(await told('component', input)).toEqual(await told('conform', input))
  })
})

describe('a component of TypeScript', () => {
  const ended = async (input: object) => session.call('alone', input as never, { wait: 'finished', deadlineMs: 30_000 })

  it('fails at once when it waits for what never comes', async () => {
    const error = {
      code: 'tool_error',
      message: expect.stringContaining('waits for a promise that nothing will settle'),
    }
    expect(await ended({ do: 'never' })).toMatchObject({ results: [], outcome: { status: 'error', error } })
    const half = await ended({ do: 'half' })
    expect(half).toMatchObject({ results: [{ output: 'half' }], outcome: { status: 'error', error } })
  })

  it('is not told its session, and says so', async () => {
    const message = 'Cannot read ctx.sessionId: a component is not told which call it serves'
    expect((await ended({ do: 'session' })).outcome).toMatchObject({ error: { code: 'tool_error', message } })
  })

  it('has other random values in every call', async () => {
    const [one, other] = [await ended({ do: 'random' }), await ended({ do: 'random' })]
    const values = [one, other].flatMap(({ results }) => results[0]?.output as unknown[])
    expect(new Set(values).size).toBe(4)
  })

  it('writes console, telemetry and failures that nobody waits for into its log', async () => {
    const { sequence } = await ended({ do: 'log' })
    const written = async () => {
      const { body } = await server.get(`/v1/sessions/${session.id}/calls/${sequence}/log`)
      return ((body.telemetry ?? []) as string[]).map((record) => JSON.parse(record) as unknown)
    }
    // It is written when `run` is over, which may be after the answer.
    await expect
      .poll(written, { timeout: 10_000 })
      .toEqual([
        { level: 'info', message: 'said {"n":1} x' },
        { level: 'error', message: '10' },
        { own: true },
        { level: 'error', message: expect.stringMatching(/^Nobody caught Error: nobody waits/) },
      ])
  })

  it('carries what its schemas say, as the application advertises it', async () => {
    const { component: file } = built.find(({ name }) => name === 'conform') as BuiltTool
    expect(embeddedMetadata(await readFile(file))).toEqual([toolMetadata(conform)])
  })
})
