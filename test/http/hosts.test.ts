import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JournalRecord } from '../../src/journal/record.ts'
import { HostClient } from '../support/host-client.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({ BRAIN_API_TOKEN: 'application' })
  server.token = 'application'
})
afterAll(() => server[Symbol.asyncDispose]())

const kindsOf = (records: readonly JournalRecord[], after = 0): string[] =>
  records.filter(({ sequence }) => sequence > after).map(({ event_type: type }) => type)

describe('a host', () => {
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
})
