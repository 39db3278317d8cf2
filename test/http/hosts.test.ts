import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { HostCommand } from '../../src/contract/host-protocol.ts'
import type { JournalRecord } from '../../src/journal/record.ts'
import { HostClient, type HostStream } from '../support/host-client.ts'
import { expectSoundJournal } from '../support/journal-checks.ts'
import { startServer, TestSession, type TestServer } from '../support/server.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({ BRAIN_API_TOKEN: 'application' })
  server.token = 'application'
})
afterAll(() => server[Symbol.asyncDispose]())

const kindsOf = (records: readonly JournalRecord[], after = 0): string[] =>
  records.filter(({ sequence }) => sequence > after).map(({ event_type: type }) => type)

const dataOf = (records: readonly JournalRecord[], type: string): any =>
  records.findLast(({ event_type: kind }) => kind === type)?.data

/** A host that is connected, and a session with one tool in it. */
async function placed(
  ...options: Parameters<HostClient['session']>
): Promise<{ host: HostClient; stream: HostStream; session: TestSession }> {
  const host = await HostClient.register(server)
  const stream = await host.connect()
  return { host, stream, session: await host.session(...options) }
}

/** Starts a direct call, which is not waited for. @returns its end */
const start = (session: TestSession, deadlineMs?: number): ReturnType<TestSession['call']> =>
  session.call({}, { wait: 'finished', ...(deadlineMs === undefined ? {} : { deadlineMs }) })

/** The records of a session once there is one of a kind. */
async function recordsWith(session: TestSession, kind: string): Promise<readonly JournalRecord[]> {
  for (;;) {
    const records = await session.records()
    if (kindsOf(records).includes(kind)) return records
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

describe.concurrent('a host', () => {
  it('is registered by the application, and is opened by its own token only', async () => {
    const host = await HostClient.register(server)
    expect(host.id).toMatch(/^host_[A-Za-z0-9]{20,32}$/)
    expect(host.token).toMatch(/^bht_/)
    const status = async (path: string, token: string | undefined): Promise<number> => {
      const headers = { authorization: token === undefined ? '' : `Bearer ${token}` }
      const stream = path.endsWith('/commands')
      const answer = stream
        ? await server.request('GET', path, { headers })
        : await server.post(path, { connection: 1 }, { headers })
      return answer.status
    }
    const other = await HostClient.register(server)
    for (const token of [undefined, 'application', other.token, `${host.token}x`]) {
      expect(await status(`${host.path}/commands`, token)).toBe(401)
      expect(await status(`${host.path}/suspend`, token)).toBe(401)
    }
    expect(await status('/v1/hosts/host_00000000000000000000/commands', host.token)).toBe(404)
    expect(await status('/v1/hosts', host.token)).toBe(401)
    expect(await status('/v1/sessions', host.token)).toBe(401)
  })

  it('is kept as a digest of its token', async () => {
    const host = await HostClient.register(server)
    const text = await readFile(join(server.directory, 'data/hosts', `${host.id}.json`), 'utf8')
    expect(text).toContain(createHash('sha256').update(host.token).digest('hex'))
    expect(text).not.toContain(host.token)
  })

  it('runs a tool that is called directly: what it says is on record, in order, with its origin', async () => {
    const host = await HostClient.register(server)
    const stream = await host.connect()
    expect(stream.first).toEqual({ connection: 1, idle: true })
    const session = await host.session([{ name: 'lookup', output_schema: { type: 'object' } }])
    const calling = session.call({ id: 7 }, { wait: 'finished' })
    const command = await stream.command()
    expect(command).toEqual({
      session_id: session.id,
      environment: 'app',
      sequence: expect.any(Number),
      deadline_at_ms: expect.any(Number),
      operation: { type: 'invoke_tool', name: 'lookup', input: { id: 7 } },
    })
    const sequences = []
    for (const answer of [
      await host.emit(command, 'lookup_started', { id: 7 }),
      await host.update(command, { type: 'result', outcome: { status: 'ok', value: { at: 1 }, content: 'one' } }),
      await host.update(command, { type: 'returned', outcome: { status: 'ok', value: { at: 2 } } }),
      await host.emit(command, 'lookup_late', null),
      await host.finish(command, { at: 3 }),
    ]) {
      expect(answer.status).toBe(200)
      sequences.push(answer.body.sequence)
    }
    const { sequence } = command
    expect(sequences.map((one) => one - sequence)).toEqual([1, 2, 4, 5, 7])
    const records = (await session.records()).filter((record) => record.sequence > sequence)
    expect(kindsOf(records)).toEqual([
      'lookup_started',
      'tool_result_emitted',
      'tool_result_emitted',
      'tool_call_returned',
      'lookup_late',
      'tool_result_emitted',
      'tool_call_ended',
    ])
    for (const { origin } of records) expect(origin).toEqual({ kind: 'tool', sequence })
    expect(await calling).toMatchObject({
      finished: true,
      outcome: { status: 'ok', value: null },
      results: [{ output: { at: 1 }, content: 'one' }, { output: { at: 2 } }, { output: { at: 3 } }],
    })
  })

  it('has one stream: a newer one displaces it, and what was sent on it ends unknown', async () => {
    const { host, stream, session } = await placed()
    const calling = start(session)
    const command = await stream.command()
    const newer = await host.connect()
    expect(newer.first).toEqual({ connection: 2, idle: false })
    await stream.ended
    expect((await calling).outcome).toMatchObject({ status: 'unknown' })
    expect((await host.finish(command, 1)).body).toMatchObject({ code: 'conflict', retryable: false })
    const again = start(session)
    expect((await host.finish(await newer.command(), 'later')).status).toBe(200)
    expect((await again).results).toMatchObject([{ output: 'later' }])
    newer.close()
    await again
  })

  it('that is lost leaves its calls unknown, and is sent none until it is back', async () => {
    const { host, stream, session } = await placed()
    const calling = start(session)
    const command = await stream.command()
    expect((await host.update(command, { type: 'returned' })).status).toBe(200)
    stream.close()
    expect((await calling).outcome).toMatchObject({ status: 'unknown', message: expect.stringContaining('lost') })
    const refused = await start(session)
    expect(refused.outcome).toMatchObject({ status: 'error', error: { code: 'executor_failed' } })
    const back = await host.connect()
    expect(back.first).toEqual({ connection: 2, idle: true })
    const again = start(session)
    await host.finish(await back.command(), null)
    expect((await again).outcome).toEqual({ status: 'ok', value: null })
  })

  it('is told when it is idle, and may go then', async () => {
    const { host, stream, session } = await placed(undefined, {
      model: {
        provider: 'scripted',
        name: 'script',
        api_key: 'k',
        script: [{ tool_calls: [{ name: 'lookup', input: {} }] }, { text: 'done' }],
      },
    })
    const suspend = async (connection: unknown): Promise<unknown> => {
      const { status, body } = await host.post('suspend', { connection })
      return status === 200 ? body : status
    }
    await stream.until(true)
    const turn = session.send('go')
    await stream.until(false)
    const command = await stream.command()
    expect(await suspend(1)).toEqual({ suspended: false })
    expect(await suspend(0)).toBe(400)
    expect(await suspend(2)).toBe(409)
    expect(await suspend('one')).toBe(422)
    await host.update(command, { type: 'returned', outcome: { status: 'ok', value: 1 } })
    await turn
    // The turn has ended, the tool has not.
    expect(await suspend(1)).toEqual({ suspended: false })
    await host.finish(command, 2)
    await stream.until(true)
    expect(await suspend(1)).toEqual({ suspended: true })
    await stream.ended
    // It was told once that it is idle: not between the end of the tool and the turn that this has started.
    await expect(stream.next()).rejects.toThrow('has ended')
    expect(await suspend(1)).toBe(409)
  })

  it('lets go of a session that ends', async () => {
    const { host, session } = await placed()
    const file = join(server.directory, 'data/hosts', `${host.id}.json`)
    expect(JSON.parse(await readFile(file, 'utf8')).sessions).toEqual([session.id])
    await server.post(`${session.path}/end`)
    expect(JSON.parse(await readFile(file, 'utf8')).sessions).toEqual([])
  })
})

describe.concurrent('a tool of a host', () => {
  it('is called in a turn, wakes the session later, and the model is shown what it brought', async () => {
    const { host, stream, session } = await placed(undefined, {
      model: {
        provider: 'scripted',
        name: 'script',
        api_key: 'k',
        script: [{ tool_calls: [{ name: 'lookup', input: { id: 7 } }] }, { text: 'first' }, { text: 'second' }],
      },
    })
    const turn = session.send('look it up')
    const command = await stream.command()
    expect(command.operation).toEqual({ type: 'invoke_tool', name: 'lookup', input: { id: 7 } })
    await host.emit(command, 'progress', { done: 1 })
    await host.update(command, { type: 'returned', outcome: { status: 'ok', value: 'early' } })
    expect((await turn).status).toBe(200)
    const { sequence } = command
    const before = (await session.records()).at(-1)?.sequence ?? 0
    await host.finish(command, 'late')
    let records = await session.records()
    while (kindsOf(records, before).at(-1) !== 'turn_ended') records = await session.records()
    expect(kindsOf(records, before).slice(0, 4)).toEqual([
      'tool_result_emitted',
      'tool_call_ended',
      'session_resumed',
      'turn_started',
    ])
    const own = records.filter(({ origin }) => origin?.kind === 'tool' && origin.sequence === sequence)
    expect(kindsOf(own)).toEqual([
      'progress',
      'tool_result_emitted',
      'tool_call_returned',
      'tool_result_emitted',
      'tool_call_ended',
    ])
    const { body } = await server.get(`${session.path}/transcript`)
    expect(JSON.stringify(body.messages)).toMatch(/early.*first.*late.*second/)
  })

  it('goes on while its session is suspended, and opens it again', async () => {
    const { host, stream, session } = await placed(undefined, {
      idle_ttl_ms: 20,
      model: {
        provider: 'scripted',
        name: 'script',
        api_key: 'k',
        script: [{ tool_calls: [{ name: 'lookup', input: {} }] }, { text: 'first' }, { text: 'second' }],
      },
    })
    const turn = session.send('look it up')
    const command = await stream.command()
    await host.update(command, { type: 'returned' })
    await turn
    let records = await session.records()
    while (!kindsOf(records, command.sequence).includes('session_suspended')) records = await session.records()
    const suspended = records.at(-1)?.sequence ?? 0
    await host.finish(command, 'late')
    records = await session.records()
    while (!kindsOf(records, suspended).includes('turn_ended')) records = await session.records()
    expect(kindsOf(records, suspended).slice(0, 4)).toEqual([
      'tool_result_emitted',
      'tool_call_ended',
      'session_resumed',
      'turn_started',
    ])
  })

  it('says what is wrong in each refusal, and goes on', async () => {
    const { host, stream, session } = await placed([{ name: 'lookup', output_schema: { type: 'string' } }])
    const calling = start(session)
    const command = await stream.command()
    const { session_id, sequence } = command
    const refusals: [number, string, ReturnType<HostClient['post']>][] = [
      [400, 'invalid_request', host.emit(command, 'tool_call_ended', {})],
      [400, 'invalid_request', host.emit(command, 'no kind', {})],
      [400, 'emit_limit', host.emit(command, 'large', 'x'.repeat(1024 * 1024))],
      [400, 'invalid_request', host.update(command, { type: 'result', outcome: { status: 'ok', value: 1 } })],
      [400, 'invalid_request', host.update(command, { type: 'returned', outcome: { status: 'ok', value: 1 } })],
      [400, 'invalid_request', host.finish(command, 1)],
    ]
    for (const [status, code, answer] of refusals)
      expect([(await answer).status, (await answer).body.code]).toEqual([status, code])
    const others: [number, string, ReturnType<HostClient['post']>][] = [
      [422, 'invalid_request', host.update(command, { type: 'finish', outcome: { status: 'ok' } })],
      [422, 'invalid_request', host.post('results', { session_id, sequence, update: { type: 'end' } })],
      [422, 'invalid_request', host.post('events', { session_id, sequence, event_type: 'x' })],
      [400, 'invalid_request', host.post('model', { session_id, sequence, request: { messages: [] } })],
      [400, 'unsupported', host.post('call', { session_id, sequence, call: { method: 'kv_read', input: 'k' } })],
      [
        400,
        'unsupported_host_call',
        host.post('call', { session_id, sequence, call: { method: 'environments', input: { method: 'list' } } }),
      ],
      [409, 'conflict', host.emit({ ...command, sequence: sequence + 1 }, 'x', 1)],
    ]
    for (const [status, code, answer] of others)
      expect([(await answer).status, (await answer).body.code]).toEqual([status, code])
    expect(kindsOf(await session.records(), sequence)).toEqual([])
    expect((await host.update(command, { type: 'returned' })).status).toBe(200)
    expect((await host.update(command, { type: 'returned' })).body.message).toContain('already returned')
    expect((await host.finish(command, 'text')).status).toBe(200)
    expect((await host.emit(command, 'late', 1)).status).toBe(409)
    expect((await host.finish(command, 'text')).status).toBe(409)
    expect((await calling).results).toMatchObject([{ output: 'text' }])
  })

  it('may fail, with what the model is to be told', async () => {
    const { host, stream, session } = await placed()
    const calling = start(session)
    const error = { code: 'no_record', message: 'there is none', details: { id: 7 } }
    const outcome = { status: 'error', error, content: 'Nothing was found' }
    await host.update(await stream.command(), { type: 'returned', outcome })
    expect(await calling).toMatchObject({
      finished: true,
      outcome: { status: 'error', error },
      results: [{ is_error: true, content: 'Nothing was found' }],
    })
  })

  it('is told of its deadline once, after its call has ended', async () => {
    const { host, stream, session } = await placed()
    const calling = start(session, 100)
    const command = await stream.command()
    const cancel = await stream.command()
    const records = await recordsWith(session, 'tool_cancel_ended')
    expect(cancel).toMatchObject({
      session_id: session.id,
      environment: 'app',
      sequence: records.find(({ event_type: type }) => type === 'tool_cancel_started')?.sequence,
      operation: { type: 'cancel_tool', target_sequence: command.sequence },
    })
    expect((cancel.deadline_at_ms ?? 0) - (command.deadline_at_ms ?? 0)).toBeGreaterThan(4000)
    expect((await calling).outcome).toEqual({ status: 'timeout' })
    expect((await host.finish(command, 1)).status).toBe(409)
    expect(kindsOf(records, command.sequence)).toEqual(['tool_cancel_started', 'tool_call_ended', 'tool_cancel_ended'])
  })

  it('is told of a cancellation', async () => {
    const { host, stream, session } = await placed()
    const calling = start(session)
    const command = await stream.command()
    expect((await server.post(`${session.path}/cancel`)).status).toBe(204)
    expect((await stream.command()).operation).toEqual({ type: 'cancel_tool', target_sequence: command.sequence })
    expect((await calling).outcome).toEqual({ status: 'cancelled' })
    expect((await host.emit(command, 'late', 1)).status).toBe(409)
    await stream.until(true)
  })

  it('is finished or cancelled, never both: whoever was told so is right', async () => {
    const { host, stream, session } = await placed()
    const calls = Array.from({ length: 40 }, () => start(session))
    const commands: HostCommand[] = []
    while (commands.length < calls.length) commands.push(await stream.command())
    const half = Promise.all(commands.slice(0, 8).map((command) => host.finish(command, 1)))
    const [answers] = await Promise.all([
      Promise.all(commands.slice(8).map((command) => host.finish(command, 1))),
      half.then(() => server.post(`${session.path}/cancel`)),
    ])
    await Promise.all(calls)
    const records = await session.records()
    expectSoundJournal(records)
    for (const [index, { status }] of [...(await half), ...answers].entries()) {
      const { sequence } = commands[index] ?? {}
      const ends = records.filter(({ event_type: type }) => type === 'tool_call_ended').map(({ data }) => data as any)
      const { outcome } = ends.find((end) => end.sequence === sequence)
      expect([status, outcome.status]).toEqual(status === 200 ? [200, 'ok'] : [409, 'cancelled'])
    }
  })

  it('asks the model for itself: on record with its origin, and not part of the conversation', async () => {
    const { host, stream, session } = await placed(undefined, {
      model: {
        provider: 'scripted',
        name: 'script',
        api_key: 'k',
        script: [{ tool_calls: [{ name: 'lookup', input: {} }] }, { text: 'for the tool' }, { text: 'for the user' }],
      },
    })
    const following = fetch(`${server.url}${session.path}/events`, {
      headers: { accept: 'text/event-stream', authorization: 'Bearer application' },
    }).then((response) => response.text())
    const turn = session.send('go')
    const command = await stream.command()
    const { session_id, sequence } = command
    const nothing = { system: null, tools: null, response_format: null, max_output_tokens: null, options: null }
    const request = { messages: [{ role: 'user', content: [{ type: 'text', text: 'a secret question' }] }], ...nothing }
    const answer = await host.post('model', { session_id, sequence, request })
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({
      message: { role: 'assistant', content: [{ type: 'text', text: 'for the tool' }] },
      stop_reason: 'end_turn',
    })
    await host.finish(command, 'found')
    await turn
    expect((await host.post('model', { session_id, sequence, request })).status).toBe(409)
    const asked = (await session.records()).filter(
      ({ event_type: type, origin }) => type.startsWith('model_call_') && origin !== undefined,
    )
    expect(asked.map(({ origin }) => origin)).toEqual(Array(2).fill({ kind: 'tool', sequence }))
    await server.post(`${session.path}/end`)
    const frames = await following
    expect(frames.match(/^event: assistant_delta$/gm)).toHaveLength(1)
    expect(/^event: assistant_delta\ndata: (.*)$/m.exec(frames)?.[1]).toContain('for the user')
    expect((await server.get(`${session.path}/transcript`)).text).not.toContain('secret question')
  })
})

describe.concurrent('a session with host tools', () => {
  it('is not made while its host is not connected; its key may be used again', async () => {
    const host = await HostClient.register(server)
    const refused = await host.create()
    expect([refused.status, refused.body]).toEqual([
      500,
      { code: 'executor_failed', message: expect.stringContaining('not connected'), retryable: true },
    ])
    const failed = (await server.get('/v1/sessions?status=failed')).body.sessions.map(
      (one: { session_id: string }) => new TestSession(server, one.session_id, 'lookup'),
    ) as TestSession[]
    const records = (await Promise.all(failed.map((one) => one.records()))).find(
      (all) => dataOf(all, 'session_creation_started').environments[0].host_id === host.id,
    )
    expect(kindsOf(records ?? [])).toEqual([
      'session_creation_started',
      'environment_setup_started',
      'environment_setup_failed',
      'session_creation_failed',
    ])
    expect(dataOf(records ?? [], 'session_creation_failed')).toMatchObject({ code: 'environment_preparation_failed' })
    const file = join(server.directory, 'data/hosts', `${host.id}.json`)
    expect(JSON.parse(await readFile(file, 'utf8')).sessions).toEqual([])
  })

  it('shows the host and its configuration in its journal, and nothing of the token', async () => {
    const host = await HostClient.register(server)
    await host.connect()
    const environment = { name: 'app', driver: 'host', host_id: host.id, lifecycle: 'automatic' }
    const session = await host.session(undefined, {
      environments: [{ ...environment, configuration: { sdk_default: true } }],
    })
    const records = await session.records()
    expect(dataOf(records, 'session_creation_ended').configuration).toMatchObject({
      environments: [{ ...environment, configuration: { sdk_default: true } }],
      tools: [{ name: 'lookup', placements: { app: { implementation: { type: 'host_function', name: 'lookup' } } } }],
    })
    expect(JSON.stringify(records)).not.toContain(host.token)
    expect((await session.put('notes.txt', 'x')).status).toBe(404)
    expect((await server.get(`${session.path}/environments/app/files`)).body.code).toBe('unsupported')
  })

  it('is refused by what it asks for', async () => {
    const host = await HostClient.register(server)
    const environment = { name: 'app', driver: 'host', host_id: host.id, lifecycle: 'automatic' }
    const reasonOf = async (tool: object, ...environments: object[]): Promise<string> => {
      const { status, body } = await host.create([{ name: 'lookup', ...tool }], { environments })
      expect(status).toBe(400)
      return body.message
    }
    const unknown = { ...environment, host_id: 'host_00000000000000000000' }
    expect(await reasonOf({}, unknown)).toContain('not registered')
    expect(await reasonOf({}, { ...environment, host_id: undefined })).toContain('host_id')
    expect(await reasonOf({}, { ...environment, url: 'https://x.example' })).toContain('url')
    expect(await reasonOf({}, { ...environment, template: { max_instances: 1, configuration_schema: {} } })).toContain(
      'template',
    )
    const implementation = { type: 'brain_component', entrypoint: 'run', id: 'a'.repeat(64) }
    expect(await reasonOf({ placements: { app: { implementation } } }, environment)).toContain('host_function')
    expect(await reasonOf({ description: undefined }, environment)).toContain('description')
  })
})

describe('a host across a restart', () => {
  it('comes back with its token; what was open is interrupted, what comes then is new', async () => {
    await using own = await startServer({
      BRAIN_MAX_HOSTS: '2',
      BRAIN_HOST_UNCONNECTED_SECS: '1',
      BRAIN_MAX_TOOL_SECS: '0',
    })
    const [host, passing] = [await HostClient.register(own), await HostClient.register(own)]
    expect((await own.post('/v1/hosts')).body).toMatchObject({ code: 'overloaded', retryable: true })
    const stream = await host.connect()
    const session = await host.session()
    const calling = start(session).catch(() => undefined)
    const command = await stream.command()
    expect(command).not.toHaveProperty('deadline_at_ms')
    await own.kill()
    await Promise.all([calling, stream.ended])
    // Another one had been bound, and the crash came before its first record.
    const file = join(own.directory, 'data/hosts', `${host.id}.json`)
    const kept = JSON.parse(await readFile(file, 'utf8'))
    const orphan = `ses_${'0'.repeat(32)}`
    await writeFile(file, JSON.stringify({ ...kept, sessions: [orphan, session.id] }))
    await own.start()
    while ((await readFile(file, 'utf8')).includes(orphan)) await new Promise((resolve) => setTimeout(resolve, 5))
    expect(JSON.parse(await readFile(file, 'utf8'))).toEqual(kept)
    const back = await host.connect()
    expect(back.first).toEqual({ connection: 1, idle: true })
    expect((await host.finish(command, 1)).status).toBe(409)
    expect(dataOf(await session.records(), 'tool_call_failed')).toMatchObject({ code: 'interrupted', ambiguous: true })
    const again = start(session)
    await host.finish(await back.command(), 'new')
    expect((await again).results).toMatchObject([{ output: 'new' }])
    back.close()
    // The one that nothing holds is forgotten, and makes room.
    let status = 0
    while (status !== 200) status = (await own.post('/v1/hosts')).status
    await expect(passing.connect()).rejects.toThrow('404')

    // A server that stops lets the tool finish.
    const last = await host.connect()
    const finishing = start(session)
    const open = await last.command()
    const exited = own.kill('SIGTERM')
    while ((await own.get('/health/ready')).status === 204) await new Promise((resolve) => setTimeout(resolve, 5))
    expect((await own.post('/v1/hosts')).body.code).toBe('overloaded')
    expect((await host.finish(open, 'at last')).status).toBe(200)
    expect((await finishing).results).toMatchObject([{ output: 'at last' }])
    expect(await exited).toBe(0)
    await last.ended
  })
})
