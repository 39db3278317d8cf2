import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fixture, startServer, type TestServer, type TestSession } from '../support/server.ts'

let server: TestServer
let session: TestSession
let id: string
beforeAll(async () => {
  server = await startServer()
  id = await server.admit(await fixture('echo'))
  session = await server.session([{ name: 'echo', id }])
})
afterAll(() => server[Symbol.asyncDispose]())

const nested = (levels: number, open: string, close: string): string => open.repeat(levels) + close.repeat(levels)
const OBJECTS = `${'{"a":'.repeat(8000)}1${'}'.repeat(8000)}`
const ARRAYS = nested(100_000, '[', ']')
/** More than the 64 levels that a value may have, and few enough for every parser. */
const FREE_FORM = nested(65, '[', ']')
const DEEPEST = nested(50, '[', ']')

const model = '"model":{"provider":"scripted","name":"s","api_key":"k","script":[{"text":"a"}]}'
const placed = (configuration: string): string =>
  `"tools":[{"name":"echo","placements":{"box":{"implementation":{"type":"brain_component","entrypoint":"run","id":"${id}","configuration":${configuration}}}}}],` +
  '"environments":[{"name":"box","driver":"brain","lifecycle":"automatic"}]'
const said = (data: string): string =>
  `"transcript":[{"role":"user","content":[{"type":"native","format":"f","data":${data}}]}]`

const post = (path: string, text: string) =>
  server.request('POST', path, { bytes: Buffer.from(text), type: 'application/json' })

/** Where JSON comes in, each with a value put where its caller may put any. */
const ENDPOINTS: readonly (readonly [string, () => string, (value: string) => string])[] = [
  ['sessions, options of a tool', () => '/v1/sessions', (value) => `{${model},${placed(value)}}`],
  ['sessions, a part of a message', () => '/v1/sessions', (value) => `{${model},${said(value)}}`],
  ['messages', () => `${session.path}/messages`, (value) => `{"input":{"message":"hi","media":${value}}}`],
  ['calls', () => `${session.path}/tools/echo/calls`, (value) => `{"input":{"value":${value}}}`],
]

describe('JSON that is too deep (cases D-11)', () => {
  it.each(ENDPOINTS)('is refused in the ordinary form by %s, whole or inside', async (_name, path, around) => {
    const { pid } = server
    for (const text of [OBJECTS, ARRAYS, around(OBJECTS), around(ARRAYS), around(FREE_FORM)]) {
      const { status, body } = await post(path(), text)
      expect([400, 413, 422], text.slice(0, 200)).toContain(status)
      expect(body).toMatchObject({ code: 'invalid_request', retryable: false, message: expect.any(String) })
    }
    expect(server.pid).toBe(pid)
    expect((await server.get(session.path)).body).toMatchObject({ status: 'idle' })
  })

  it('does no harm where no body is read', async () => {
    expect((await post(`${session.path}/cancel`, ARRAYS)).status).toBe(204)
  })

  it('is carried exactly where it is not too deep', async () => {
    const value: unknown = JSON.parse(DEEPEST)
    const { status, body } = await post('/v1/sessions', `{${model},${placed(DEEPEST)},${said(DEEPEST)}}`)
    expect(status).toBe(200)
    const { messages } = (await server.get(`/v1/sessions/${body.session_id}/transcript`)).body
    expect(messages[0].content[0].data).toEqual(value)
    expect((await session.value({ value })).value).toEqual(value)
  })
})
