import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fixture, rssOf, startServer, type TestServer } from '../support/server.ts'

const web = createServer((request, response) => {
  if (request.url === '/echo') request.pipe(response.writeHead(request.method === 'POST' ? 200 : 405))
  else response.writeHead(request.url === '/tea' ? 418 : 404).end()
})
let authority: string

let server: TestServer
beforeAll(async () => {
  web.listen(0, '127.0.0.1')
  await once(web, 'listening')
  authority = `127.0.0.1:${(web.address() as AddressInfo).port}`
  server = await startServer({
    BRAIN_ENV_NETWORK_ALLOW: `https://*.allowed.example, http://${authority}`,
    SECRET_X: 'canary-of-the-environment',
    BRAIN_ENV_SECRET_ALLOW: 'SECRET_X,SECRET_ABSENT',
    BRAIN_MAX_EMITTED_BYTES: '4194304',
    BRAIN_ENV_WORKERS: '5',
  })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  web.close()
})

describe('an uploaded component', () => {
  it('runs in a session; its call is three durable records in order', async () => {
    const session = await server.sessionWith('wordcount')
    const answer = await session.call({ text: 'a b a' })
    expect(answer).toMatchObject({
      finished: true,
      outcome: { status: 'ok' },
      results: [{ output: { words: 3, unique: 2 } }],
    })
    const records = (await session.records()).filter((record) => record.sequence >= answer.sequence)
    expect(records.map((record) => record.event_type)).toEqual([
      'tool_call_started',
      'tool_result_emitted',
      'tool_call_ended',
    ])
    expect(records.map((record) => record.origin)).toEqual([
      { kind: 'application' },
      { kind: 'tool', sequence: answer.sequence },
      { kind: 'tool', sequence: answer.sequence },
    ])
  })

  it('lends its metadata to a tool entry that leaves it out, and its options schema holds', async () => {
    const id = await server.admit(await fixture('inspect'))
    const { body } = await server.get(`/v1/tools/${id}`)
    expect(body).toMatchObject({ id, status: 'admitted', metadata: { name: 'inspect' } })
    const session = await server.session([{ name: 'look', id, configuration: { depth: 2 } }])
    const [started] = await session.records()
    expect(started?.data).toMatchObject({ tools: [{ name: 'look', description: body.metadata.description }] })
    await expect(server.session([{ name: 'look', id, configuration: { depth: 0 } }])).rejects.toThrow(
      /400.*options_schema.*depth/,
    )
  })

  it('is listed, refuses to be deleted while a session uses it, and is gone after', async () => {
    const session = await server.sessionWith('probe')
    const { body } = await server.get('/v1/tools')
    const probe = body.tools.find((tool: { metadata?: { name: string } }) => tool.metadata?.name === 'probe')
    const conflict = await server.request('DELETE', `/v1/tools/${probe.id}`)
    expect([conflict.status, conflict.body.code]).toEqual([409, 'conflict'])
    await server.post(`${session.path}/end`)
    expect((await server.request('DELETE', `/v1/tools/${probe.id}`)).status).toBe(204)
    expect((await server.get(`/v1/tools/${probe.id}`)).status).toBe(404)
    const late = server.session([{ name: 'probe', id: probe.id as string }])
    await expect(late).rejects.toThrow(/400.*no tool .* is admitted/)
  })

  it('keeps texts exact on every way: input, result, event, error, option and file (D-02)', async () => {
    const option = { 'schlüssel😀': '你好' }
    const session = await server.sessionWith('echo', { configuration: option })
    const texts = [
      'é',
      '你好',
      '😀',
      '',
      `a${'😀'.repeat(5000)}`,
      'ab\u0000c',
      'mixé😀'.repeat(90_000),
      { 'ключ😀': 1 },
    ]
    for (const value of texts) {
      const given = await session.value({ value })
      expect(given.value).toEqual(value)
      expect(given.options).toEqual(option)
      if (typeof value === 'string')
        expect([given.code_points, given.utf16_units]).toEqual([Array.from(value).length, value.length])
    }
    const events = (await session.records()).filter((record) => record.event_type === 'echoed')
    expect(events.map((record) => record.data)).toEqual(texts)
    const failed = await session.call({ value: 'kaputt 😀', fail: true })
    expect(failed.outcome).toMatchObject({ status: 'error', error: { code: 'echo_failed', message: 'kaputt 😀' } })
    const filed = await session.value({ value: 'inhält', file: 'naïve-日本.txt' })
    expect(filed.file).toEqual({ name: 'naïve-日本.txt', content: 'inhält' })
    expect((await session.file(encodeURIComponent('naïve-日本.txt'))).text).toBe('inhält')
  })

  it('holds nothing without grants, and the call ends ok (D-04)', async () => {
    const session = await server.sessionWith('probe', { grants: {}, name: 'probe' })
    const port = Number(new URL(server.url).port)
    const answer = await session.call({ port, open: ['/tmp', server.directory] }, { wait: 'finished' })
    expect(answer.outcome).toEqual({ status: 'ok', value: null })
    const report = answer.results[0]?.output as Record<string, any>
    expect(report).toMatchObject({ preopens: [], env: [], argv: ['tool'] })
    for (const file of report['files']) {
      expect(file.read.error, file.path).toBeDefined()
      expect(file.list.error, file.path).toBeDefined()
    }
    for (const [what, result] of Object.entries<any>(report['network'])) expect(result.error, what).toBeDefined()
    expect(JSON.stringify(answer)).not.toContain('canary-of-the-environment')
  })

  it('sees neither session id nor sequence in anything it is given', async () => {
    const session = await server.sessionWith('probe', { name: 'probe' })
    const report = JSON.stringify((await session.call({}, { wait: 'finished' })).results[0]?.output)
    expect(report).not.toContain(session.id)
    expect(report).not.toContain(session.id.slice(4))
    expect(report).not.toMatch(/ses_|"sequence"/)
    expect(report).not.toContain(server.directory)
  })

  it('reads a granted secret as a file only, and no record or log has its value', async () => {
    const grants = { secrets: ['SECRET_X'] }
    const session = await server.sessionWith('files', { grants })
    expect(await session.value({ op: 'get', path: '/secrets/SECRET_X' })).toEqual({ text: 'canary-of-the-environment' })
    const other = await server.sessionWith('files', { grants: {} })
    const denied = await other.call({ op: 'get', path: '/secrets/SECRET_X' })
    expect(denied.outcome?.status).toBe('error')
    expect(server.log).not.toContain('canary-of-the-environment')
    expect(JSON.stringify(await other.records())).not.toContain('canary-of-the-environment')
  })

  it.each([
    [{ secrets: ['HOME'] }, /secret "HOME".*BRAIN_ENV_SECRET_ALLOW/],
    [{ secrets: ['SECRET_ABSENT'] }, /secret "SECRET_ABSENT".*no variable/],
    [{ network: ['https://example.com'] }, /network access to "https:\/\/example.com".*BRAIN_ENV_NETWORK_ALLOW/],
    [{ network: ['https://*.allowed.example', 'https://allowed.example'] }, /access to "https:\/\/allowed.example"/],
    [{ network: ['http://*.allowed.example'] }, /network access to "http:\/\/\*.allowed.example"/],
    [{ network: ['https://user@a.allowed.example'] }, /must be an origin/],
    [{ network: ['https://a.allowed.example/'] }, /must be an origin/],
    [{ filesystem: { home: 'read' } }, /home/],
  ])('is refused the grant %j with a message that names it', async (grants, message) => {
    await expect(server.sessionWith('wordcount', { grants })).rejects.toThrow(message)
  })

  it('reaches the origins that its session was granted, and no other', async () => {
    const grants = { network: [`http://${authority}`, 'https://www.allowed.example'] }
    const session = await server.sessionWith('http-probe', { grants })
    expect(await session.value({ authority, path: '/tea' })).toEqual({ status: 418 })
    expect(await session.value({ authority: 'other.allowed.example', https: true })).toEqual({
      error: expect.stringContaining('HttpRequestDenied'),
    })
    const without = await server.sessionWith('http-probe', { grants: {} })
    expect(await without.value({ authority })).toEqual({ error: expect.stringContaining('HttpRequestDenied') })
  })

  it('sends a body and reads the answer at once: each piece comes back before the next one is sent', async () => {
    const session = await server.sessionWith('http-probe', { grants: { network: [`http://${authority}`] } })
    const echo = (rounds: number, bytes: number) =>
      session.value({ authority, path: '/echo', post: { rounds, bytes } }) as Promise<unknown>
    expect(await echo(3, 5)).toEqual({ status: 200, echoed: 15 })
    expect(await echo(64, 65_536)).toEqual({ status: 200, echoed: 4 * 1024 * 1024 })
    expect(await echo(0, 0)).toEqual({ status: 200, echoed: 0 })
  })

  it('writes 256 KiB to each standard stream, polls them, and finishes; five at once (D-03)', async () => {
    const session = await server.sessionWith('files', { name: 'files' })
    const began = performance.now()
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => session.call({ op: 'flood', kb: 256 }, { wait: 'finished' })),
    )
    expect(performance.now() - began).toBeLessThan(10_000)
    for (const answer of answers) {
      expect(answer.outcome).toEqual({ status: 'ok', value: null })
      const body = await session.logWhen(answer.sequence, (log) => log.stdout !== '')
      expect(body.stdout.length).toBe(65_536)
      expect(body.stderr.length).toBe(65_536)
    }
  })

  it('writes text that looks like a log record of ours, which stays data', async () => {
    const session = await server.sessionWith('files', { name: 'files' })
    const text = '{"level":50,"msg":"forged \u001b[31m"}'
    const answer = await session.call({ op: 'print', text }, { wait: 'finished' })
    const log = await session.logWhen(answer.sequence, ({ stdout }) => stdout !== '')
    expect(log).toMatchObject({ stdout: `${text}\n`, stderr: `${text}\n` })
    const forged = server.log.split('\n').filter((line) => line.startsWith('{"level":50'))
    expect(forged).toEqual([])
  })
})

describe('host imports', () => {
  const play = async (steps: unknown[], more: Record<string, unknown> = {}, script?: unknown) => {
    const session = await server.sessionWith('outcomes', {
      name: 'outcomes',
      ...(script === undefined ? {} : { script }),
    })
    const answer = await session.call({ steps, ...more }, { wait: 'finished', deadlineMs: 3000 })
    const isThere = ({ stdout, trap }: any): boolean => stdout.endsWith('\n') || trap !== undefined
    const log = await session.logWhen(answer.sequence, isThere)
    return { session, answer, log, steps: JSON.parse(log.stdout.split('\n').at(-2) ?? '[]') as any[] }
  }

  it('answer the committed sequences', async () => {
    const { answer, steps } = await play([
      { do: 'emit', kind: 'began', payload: { a: 1 } },
      { do: 'emit_result', outcome: { status: 'ok', value: 1 } },
      { do: 'returned', outcome: { status: 'ok', value: 2 } },
      { do: 'emit', kind: 'later', payload: 1 },
      { do: 'finish', outcome: { status: 'ok', value: '$log' } },
    ])
    const base = answer.sequence
    expect(steps).toEqual([base + 1, base + 2, base + 4, base + 5, base + 7].map((sequence) => ({ sequence })))
    expect(answer.results.map((result) => result.output).slice(0, 2)).toEqual([1, 2])
    expect(answer.results[2]?.output).toEqual(steps.slice(0, 4))
  })

  it('refuse everything after finish, and the guest may go on', async () => {
    const { answer, steps } = await play([
      { do: 'finish', outcome: null },
      { do: 'emit', kind: 'late', payload: 1 },
      { do: 'emit_result', outcome: { status: 'ok', value: 1 } },
      { do: 'finish', outcome: null },
      { do: 'model', request: { messages: [] } },
      { do: 'environments', request: { operation: 'list' } },
      { do: 'telemetry', record: { after: true } },
    ])
    expect(answer.outcome).toEqual({ status: 'ok', value: null })
    expect(steps.slice(1, 6).map((step) => step.code)).toEqual(Array.from({ length: 5 }, () => 'invalid_request'))
  })

  it('refuse reserved kinds, malformed envelopes and environments, and the call stays open', async () => {
    const { steps } = await play([
      { do: 'emit', kind: 'tool_call_ended', payload: 1 },
      { do: 'emit', kind: 'x', payload: { raw: '{' } },
      { do: 'emit_result', outcome: { status: 'ok' } },
      { do: 'environments', request: {} },
      { do: 'finish', outcome: { status: 'ok', value: '$log' } },
    ])
    expect(steps.slice(0, 4).map((step) => step.code)).toEqual([
      'invalid_request',
      'invalid_request',
      'invalid_output',
      'unsupported_host_call',
    ])
  })

  it('ask the model, journalled with the tool as origin; telemetry goes to the log only', async () => {
    const request = { messages: [{ role: 'user', content: [{ type: 'text', text: 'q' }] }] }
    const { session, steps, log } = await play(
      [
        { do: 'model', request },
        { do: 'telemetry', record: { t: 1 } },
        { do: 'finish', outcome: { status: 'ok', value: '$log' } },
      ],
      {},
      [{ text: 'the answer' }],
    )
    expect(steps[0].answer.message.content[0].text).toBe('the answer')
    expect(log.telemetry).toEqual(['{"t":1}'])
    const kinds = (await session.records()).map((record) => record.event_type)
    expect(kinds.slice(4)).toEqual([
      'tool_call_started',
      'model_call_started',
      'model_call_ended',
      'tool_result_emitted',
      'tool_call_ended',
    ])
  })

  it.each([
    ['a returned value', { returns_json: { n: 1 } }, 'timeout'],
    ['a returned failure', { returns_json: { status: 'error', error: { code: 'sad', message: 'no' } } }, 'error'],
    ['a tool-error', { fails: { code: 'my_code', message: 'mine' } }, 'error'],
    ['a tool-error with a bad code', { fails: { code: 'not a code!', message: 'mine' } }, 'error'],
    ['no JSON', { returns: '{' }, 'error'],
    ['nothing', {}, 'timeout'],
  ])('take %s of run; one that forgets to finish stays open until its deadline', async (_what, more, status) => {
    const { answer, log } = await play([], more)
    expect(answer.outcome?.status).toBe(status)
    if (status === 'timeout') expect(log.warnings[0]).toMatch(/finish/)
  })

  it('end a trap as tool_error with the text in the log, and the next call works', async () => {
    const { session, answer, log } = await play([{ do: 'emit', kind: 'before', payload: 1 }, { do: 'trap' }])
    expect(answer.outcome).toMatchObject({ status: 'error', error: { code: 'tool_error' } })
    expect(log.trap).toBeDefined()
    expect((await session.call({ steps: [{ do: 'finish', outcome: null }] })).outcome?.status).toBe('ok')
  })

  it('let exit end only the call', async () => {
    const session = await server.sessionWith('files', { name: 'files' })
    expect((await session.call({ op: 'exit', code: 3 })).outcome).toMatchObject({ error: { code: 'tool_error' } })
    expect((await session.call({ op: 'panic' })).outcome).toMatchObject({ error: { code: 'tool_error' } })
    expect((await session.call({ op: 'recurse' })).outcome).toMatchObject({ error: { code: 'tool_error' } })
    expect(await session.value({ op: 'put', path: 'a', text: 'x' })).toEqual({ bytes: 1 })
  })
})

describe('deadlines and limits', () => {
  it('kill a busy loop and a memory.fill loop in time, again and again, beside calls that go on (D-08)', async () => {
    const id = await server.admit(await fixture('slow'))
    const pid = server.pid
    await Promise.all(
      Array.from({ length: 4 }, async (_, index) => {
        const session = await server.session([{ name: 'slow', id }])
        for (const how of ['spin', 'fill', 'copy']) {
          const began = performance.now()
          const answer = await session.call({ how, loop: true }, { deadlineMs: 1000 })
          expect(answer.outcome).toEqual({ status: 'timeout' })
          expect(performance.now() - began).toBeLessThan(2000)
        }
        expect(await session.value({ how: 'spin', ms: 5, loop: false })).toBeDefined()
        if (index > 0) return
        const open = session.call({ how: 'spin', loop: true })
        await new Promise((resolve) => setTimeout(resolve, 100))
        await server.post(`${session.path}/cancel`)
        expect((await open).outcome).toEqual({ status: 'cancelled' })
      }),
    )
    expect(server.pid).toBe(pid)
    expect((await server.get('/health/ready')).status).toBe(204)
  })

  it('end a component that asks for 4 GiB, at once or bit by bit, and the server does not grow', async () => {
    const session = await server.sessionWith('hog', { name: 'hog' })
    await session.value({ mb: 8 })
    const before = await rssOf(server.pid)
    for (const how of ['blocks', 'grow', 'abort']) {
      const { outcome } = await session.call({ mb: 4096, how }, { wait: 'finished', deadlineMs: 20_000 })
      expect(outcome?.status).toBe('error')
    }
    const atOnce = await server.sessionWith('memory-4gib', { name: 'big' }).catch((error: unknown) => String(error))
    if (typeof atOnce !== 'string') expect((await atOnce.call({})).outcome?.status).toBe('error')
    expect((await rssOf(server.pid)) - before).toBeLessThan(16 * 1024 * 1024)
    expect(await session.value({ mb: 8 })).toEqual({ taken_mb: 8 })
  })

  it('end a component that loops in its start function, and the next session works', async () => {
    const session = await server.session([
      {
        name: 'start_loop',
        id: await server.admit(await fixture('start-loop')),
        description: 'loops',
        input_schema: {},
      },
    ])
    const { outcome } = await session.call({}, { deadlineMs: 20_000 })
    expect(outcome?.status).toBe('error')
    expect(await (await server.sessionWith('wordcount')).value({ text: 'a' })).toMatchObject({ words: 1 })
  })

  it('run a tool that uses 100 MiB many times in one box', async () => {
    const session = await server.sessionWith('files', { name: 'files' })
    for (let round = 0; round < 40; round++)
      expect(await session.value({ op: 'hold', mb: 100 })).toEqual({ held_mb: 100 })
  })

  it('run components whose data segments are placed by extended constants (D-01)', async () => {
    for (const name of ['extended-const', 'extended-const-imported']) {
      const session = await server.session([
        { name: 'x', id: await server.admit(await fixture(name)), description: 'x', input_schema: {} },
      ])
      expect((await session.call({})).outcome?.status ?? 'open').not.toBe('error')
    }
  })
})

describe('the workspace over HTTP', () => {
  it('is what the guest sees, both ways', async () => {
    const session = await server.sessionWith('files', { name: 'files' })
    expect((await session.put('in/a.txt', 'hello')).status).toBe(200)
    expect(await session.value({ op: 'get', path: 'in/a.txt' })).toEqual({ text: 'hello' })
    await session.value({ op: 'put', path: 'in/b.txt', text: 'from the guest' })
    const read = await session.file('in/b.txt')
    expect(read.text).toBe('from the guest')
    expect(read.headers.get('content-type')).toBe('application/octet-stream')
    expect(read.headers.get('x-content-type-options')).toBe('nosniff')
    expect(read.headers.get('content-disposition')).toBe('attachment')
    expect(read.headers.get('content-security-policy')).toBe('sandbox')
    const list = await server.get(`${session.path}/environments/box/files?prefix=in/`)
    expect(list.body.files.map((file: { path: string; size: number }) => [file.path, file.size])).toEqual([
      ['in/a.txt', 5],
      ['in/b.txt', 14],
    ])
    expect((await server.request('DELETE', `${session.path}/environments/box/files/in/a.txt`)).status).toBe(204)
    expect((await session.file('in/a.txt')).status).toBe(404)
  })

  it('carries large files without loss', async () => {
    const session = await server.sessionWith('files', { name: 'files' })
    const bytes = Buffer.alloc(5_000_000, randomUUID())
    expect((await session.put('big', bytes)).body).toEqual({ path: 'big', size: bytes.length })
    const response = await fetch(`${server.url}${session.path}/environments/box/files/big`)
    expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true)
  })

  it.each(['..%2f..%2fetc%2fpasswd', '%2fetc%2fpasswd', 'a%00b', 'a%5cb', 'a/%2e%2e/b', 'a//b', '%ff'])(
    'refuses the path %s',
    async (path) => {
      const session = await server.sessionWith('files', { name: 'files' })
      for (const method of ['GET', 'PUT', 'DELETE']) {
        const response = await rawRequest(method, `${session.path}/environments/box/files/${path}`)
        expect([400, 404]).toContain(response)
      }
    },
  )

  it('is kept apart from other sessions', async () => {
    const [one, two] = [await server.sessionWith('files'), await server.sessionWith('files')]
    await one.put('mine', 'secret')
    expect((await two.file('mine')).status).toBe(404)
    expect((await two.call({ op: 'get', path: 'mine' })).outcome?.status).toBe('error')
  })

  it('is read only for a tool that was granted reading, and scratch is new for every call', async () => {
    const session = await server.sessionWith('files', {
      name: 'files',
      grants: { filesystem: { workspace: 'read', scratch: 'write' } },
    })
    await session.put('a', 'x')
    expect(await session.value({ op: 'get', path: 'a' })).toEqual({ text: 'x' })
    expect((await session.call({ op: 'put', path: 'a', text: 'y' })).outcome?.status).toBe('error')
    expect((await session.call({ op: 'remove', path: 'a' })).outcome?.status).toBe('error')
    await session.value({ op: 'put', path: '/scratch/s', text: '1' })
    expect(await session.value({ op: 'list', path: '/scratch' })).toEqual([])
  })
})

/** Sends a path as it stands: fetch would normalise it. @returns the status */
async function rawRequest(method: string, path: string): Promise<number> {
  const { request } = await import('node:http')
  const { hostname, port } = new URL(server.url)
  return new Promise((resolve, reject) => {
    request({ hostname, port, path, method, headers: { 'content-length': 0 } }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
      .on('error', reject)
      .end()
  })
}
