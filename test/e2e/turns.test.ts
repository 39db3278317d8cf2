import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectSoundJournal } from '../support/journal-checks.ts'
import { fixture, startServer, type TestServer } from '../support/server.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server[Symbol.asyncDispose]())

describe('a turn with real components', () => {
  it('calls two tools at once, tells the model their results in order, and leaves a sound journal', async () => {
    const wordcount = await server.admit(await fixture('wordcount'))
    const inspect = await server.admit(await fixture('inspect'))
    const session = await server.session(
      [
        { name: 'wordcount', id: wordcount },
        { name: 'inspect', id: inspect, configuration: { depth: 1 } },
      ],
      {
        script: [
          {
            text: 'let me look',
            tool_calls: [
              { name: 'inspect', input: { path: '.' } },
              { name: 'wordcount', input: { text: 'one two two' } },
              { name: 'wordcount', input: { wrong: true } },
            ],
          },
          { text: 'all done' },
        ],
      },
    )
    await session.put('notes/a.txt', 'hello')
    const sent = await session.send('look around')
    expect(sent.body.status).toBe('idle')
    const { body } = await server.get(`${session.path}/transcript`)
    const results = body.messages[2].content
    expect(results[0].content.entries).toContainEqual(expect.objectContaining({ kind: 'directory' }))
    expect(results[1]).toMatchObject({ is_error: false, content: { words: 3, unique: 2 } })
    expect(results[2]).toMatchObject({ is_error: true, content: { code: 'invalid_input' } })
    expect(body.messages[3].content[0].text).toBe('all done')
    expectSoundJournal(await session.records())
  })

  it('is cancelled with the component that it waits for', async () => {
    const slow = await server.admit(await fixture('slow'))
    const script = [{ tool_calls: [{ name: 'slow', input: { how: 'spin', loop: true } }] }, { text: 'never' }]
    const session = await server.session([{ name: 'slow', id: slow }], { script })
    const sent = session.send('go')
    await expect
      .poll(async () => (await session.records()).some((record) => record.event_type === 'tool_call_started'))
      .toBe(true)
    const began = performance.now()
    expect((await server.post(`${session.path}/cancel`)).status).toBe(204)
    await sent
    expect(performance.now() - began).toBeLessThan(2000)
    const records = await session.records()
    expect(records.find((record) => record.event_type === 'tool_call_ended')?.data).toMatchObject({
      outcome: { status: 'cancelled' },
    })
    expect(records.find((record) => record.event_type === 'turn_failed')?.data).toMatchObject({ code: 'cancelled' })
    expectSoundJournal(records)
  })

  it('wakes for a component that goes on after its return', async () => {
    const outcomes = await server.admit(await fixture('outcomes'))
    const steps = [
      { do: 'returned', outcome: { status: 'ok', value: 'early' } },
      { do: 'sleep', ms: 150 },
      { do: 'finish', outcome: { status: 'ok', value: 'late' } },
    ]
    const script = [{ tool_calls: [{ name: 'outcomes', input: { steps } }] }, { text: 'waiting' }, { text: 'thanks' }]
    const session = await server.session([{ name: 'outcomes', id: outcomes }], { script })
    await session.send('go')
    const said = async (): Promise<string[]> =>
      (await session.records())
        .filter((record) => record.event_type === 'output_emitted')
        .map((record) => JSON.stringify(record.data))
    await expect.poll(said, { timeout: 5000 }).toHaveLength(2)
    await expect.poll(async () => (await server.get(session.path)).body.status).toBe('idle')
    const turns = (await session.records()).filter((record) => record.event_type === 'turn_started')
    expect(turns.map((turn) => turn.data)).toEqual([{ input: { message: 'go' } }, { trigger: 'events' }])
    expectSoundJournal(await session.records())
  })

  it('goes on after a restart with everything that was said', async () => {
    const wordcount = await server.admit(await fixture('wordcount'))
    const script = [{ text: 'first' }, { text: 'second' }]
    const session = await server.session([{ name: 'wordcount', id: wordcount }], { script })
    await session.put('kept.txt', 'kept')
    await session.send('one')
    await server.kill('SIGTERM')
    await server.start()
    await session.send('two')
    const { body } = await server.get(`${session.path}/transcript`)
    expect(body.messages.map((message: any) => message.content[0].text)).toEqual(['one', 'first', 'two', 'second'])
    expect((await session.file('kept.txt')).text).toBe('kept')
    expect(await session.value({ text: 'a' }, { tool: 'wordcount' })).toMatchObject({ words: 1 })
  })
})

describe('what is kept on disk', () => {
  it('holds the key of the model sealed, and nowhere else', async () => {
    const session = await server.sessionWith('wordcount')
    await session.send('hello')
    const { execFileSync } = await import('node:child_process')
    const found = execFileSync(
      'sh',
      ['-c', `grep -rlaF secret-model-key ${JSON.stringify(server.directory)} || true`],
      { encoding: 'utf8' },
    )
    expect(found).toBe('')
    expect(server.log).not.toContain('secret-model-key')
    expect((await server.get(`${session.path}/events`)).text).not.toContain('secret-model-key')
  })
})
