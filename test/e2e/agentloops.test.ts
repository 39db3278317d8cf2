import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fixture, typescriptAgentloop } from '../fixtures/components.ts'
import { agentloopConformance } from '../support/agentloop-conformance.ts'
import { fixture as bytesOf, startServer, type TestServer, type TestSession } from '../support/server.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server[Symbol.asyncDispose]())

const component = async (path: string): Promise<object> => {
  const id = await server.admit(await readFile(path), 'agentloops')
  return { implementation: { type: 'brain_component', entrypoint: 'turn', id }, environment: 'box' }
}

agentloopConformance(
  'that is built in',
  () => server,
  async () => undefined,
)
agentloopConformance(
  'in Rust',
  () => server,
  async () => component(fixture('agentloop')),
)
agentloopConformance(
  'in TypeScript',
  () => server,
  async () => component(await typescriptAgentloop('agentloop')),
)

describe('defineAgentloop()', () => {
  let session: TestSession

  beforeAll(async () => {
    const agentloop = await component(await typescriptAgentloop('agentloop-helper'))
    const tools = [{ name: 'wordcount', id: await server.admit(await bytesOf('wordcount')) }]
    session = await server.session(tools, { script: [{ text: 'hello' }], request: { agentloop } })
  })

  /** @returns what the turn that a message leads to has in the end */
  async function doing(message: string): Promise<any> {
    await session.send(message)
    return (await session.records()).at(-1)?.data
  }

  it('gives a handler what the turn starts from, and nothing to acknowledge', async () => {
    const services = ['callTool', 'callTools', 'emit', 'environments', 'kv', 'model', 'readEvents', 'setTranscript']
    const facts = ['configuration', 'events', 'input', 'runtime', 'system', 'tools', 'transcript', 'telemetry']
    const members = [...services, ...facts].toSorted()
    expect(await doing('look')).toMatchObject({ result: { members, seed: 32 } })
  })

  it('reads in kv what was written, null as a value, and keeps it for later turns', async () => {
    expect((await doing('remember')).result).toEqual({
      before: 'none',
      during: 'null',
      list: [1],
      refused: 'TypeError: value is undefined, which is not JSON',
      after: 'none',
    })
    expect((await doing('recall')).result).toEqual({ list: [1], kept: 'none' })
  })

  it('fails the turn with the code of what was thrown, and what was written before stays', async () => {
    expect(await doing('fail')).toEqual({ code: 'no_luck', message: 'not today', retryable: true, ambiguous: false })
    expect((await doing('recall')).result).toMatchObject({ kept: 'before the failure' })
    expect(await doing('break')).toMatchObject({ code: 'agentloop_failed', message: 'broken' })
    expect(await doing('leave')).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('emit') })
  })

  it('runs what the handler waits for, and fails a turn that waits for ever', async () => {
    expect(await doing('wait')).toMatchObject({ result: [1, 2, true] })
    expect(await doing('fail later')).toMatchObject({ code: 'no_luck', message: 'later' })
    const message = expect.stringContaining('waits for a promise that nothing will settle')
    expect(await doing('forever')).toMatchObject({ code: 'agentloop_failed', message })
  })

  it('asks for the handler, which may catch what is refused', async () => {
    expect((await doing('ask')).result).toEqual({
      answer: { role: 'assistant', content: [{ type: 'text', text: 'hello' }] },
      codes: ['invalid_request', 'unsupported_host_call', 'invalid_request'],
    })
  })

  it('names calls and their places, and has no input when their records wake it', async () => {
    const before = (await session.records()).length
    await session.send('call')
    const ends = async () =>
      (await session.records())
        .slice(before)
        .filter(({ event_type }) => event_type === 'turn_ended')
        .map(({ data }: any) => data.result)
    await expect.poll(ends).toHaveLength(2)
    const done = { finished: true, events: expect.any(Number) }
    expect(await ends()).toEqual([
      [
        { call_id: 'loop_call_1', ...done },
        { call_id: 'loop_call_2', ...done },
        { call_id: 'mine', ...done },
      ],
      'woken',
    ])
  })
})
