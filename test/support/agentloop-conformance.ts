import { beforeAll, describe, expect, it } from 'vitest'
import type { JournalRecord } from '../../src/journal/record.ts'
import { expectSoundJournal } from './journal-checks.ts'
import { fixture, type TestServer, type TestSession } from './server.ts'

/** The loop of a session, as its create request names it; nothing for the built-in one. */
type LoopOf = (server: TestServer) => Promise<object | undefined>

const kindsOf = (records: readonly JournalRecord[], kind: string): readonly any[] =>
  records.filter((record) => record.event_type === kind).map((record) => record.data)

const texts = (messages: readonly any[]): string[] =>
  messages.map(({ role, content }) => `${role}: ${content.map((block: any) => block.text ?? block.type).join(' + ')}`)

/** What every agentloop does that talks with a model and uses its tools (contract 7.5), whatever it is made of. */
export function agentloopConformance(name: string, server: () => TestServer, loopOf: LoopOf): void {
  describe(`the agentloop ${name}`, () => {
    let agentloop: object | undefined
    let ids: { readonly wordcount: string; readonly outcomes: string; readonly slow: string }

    beforeAll(async () => {
      agentloop = await loopOf(server())
      ids = {
        wordcount: await server().admit(await fixture('wordcount')),
        outcomes: await server().admit(await fixture('outcomes')),
        slow: await server().admit(await fixture('slow')),
      }
    })

    const open = (script: readonly unknown[], tools: readonly (keyof typeof ids)[] = []): Promise<TestSession> =>
      server().session(
        tools.map((tool) => ({ name: tool, id: ids[tool] })),
        { script, request: agentloop === undefined ? {} : { agentloop } },
      )

    const transcriptOf = async (session: TestSession): Promise<any[]> =>
      (await server().get(`${session.path}/transcript`)).body.messages

    const untilIdle = async (session: TestSession, turns: number): Promise<readonly JournalRecord[]> => {
      await expect
        .poll(
          async () => {
            const records = await session.records()
            return kindsOf(records, 'turn_ended').length + kindsOf(records, 'turn_failed').length
          },
          { timeout: 10_000 },
        )
        .toBe(turns)
      return session.records()
    }

    it('answers, shows what it answers, and is not woken by what it did', async () => {
      const session = await open([{ text: 'hello' }])
      expect((await session.send('hi')).body.status).toBe('idle')
      const records = await session.records()
      const message = { role: 'assistant', content: [{ type: 'text', text: 'hello' }] }
      expect(kindsOf(records, 'output_emitted')).toEqual([{ type: 'assistant_message', message }])
      expect(kindsOf(records, 'turn_ended')).toMatchObject([{ result: null }])
      expect(texts(await transcriptOf(session))).toEqual(['user: hi', 'assistant: hello'])
      const output = records.find((record) => record.event_type === 'output_emitted')
      const activation = records.find((record) => record.event_type === 'activation_started')
      expect(output?.origin).toEqual({ kind: 'agentloop', sequence: activation?.sequence })
      expectSoundJournal(records)
    })

    it('shows the model what came with the message', async () => {
      const session = await open([{ text: 'a cat' }])
      const image = { type: 'image', url: 'https://images.example/cat.png' }
      await server().post(`${session.path}/messages`, { input: { message: 'what is it?', media: [image] } })
      expect((await transcriptOf(session))[0].content).toEqual([{ type: 'text', text: 'what is it?' }, image])
    })

    it('makes the calls of one answer at once, and answers each in its place, those too that cannot be made', async () => {
      const calls = [
        { name: 'wordcount', input: { text: 'one two two' } },
        { name: 'nothing', input: {} },
        { name: 'wordcount', input: { wrong: true } },
        { name: 'wordcount', input: { text: 'four' } },
      ]
      const session = await open([{ text: 'wait', tool_calls: calls }, { text: 'done' }], ['wordcount'])
      await session.send('count')
      const messages = await transcriptOf(session)
      expect(texts(messages).at(-1)).toBe('assistant: done')
      const uses = messages[1].content.filter((block: any) => block.type === 'tool_use')
      expect(messages[2].content.map((block: any) => block.tool_use_id)).toEqual(uses.map((use: any) => use.id))
      expect(messages[2].content).toMatchObject([
        { is_error: false, content: { words: 3, unique: 2 } },
        { is_error: true, content: { code: 'unknown_tool' } },
        { is_error: true, content: { code: 'invalid_input' } },
        { is_error: false, content: { words: 1 } },
      ])
      const records = await session.records()
      const order = records
        .map((record) => record.event_type)
        .filter((kind) => /^tool_call_(started|ended)$/.test(kind))
      expect(order.slice(0, 3)).toEqual(['tool_call_started', 'tool_call_started', 'tool_call_started'])
      // It has read on to the end: what it has seen does not wake it once more.
      const through = kindsOf(records, 'turn_ended')[0]?.events_through
      const ended = records.findLast((record) => record.event_type === 'tool_call_ended')
      expect(through).toBeGreaterThanOrEqual(ended?.sequence ?? Number.NaN)
      expectSoundJournal(records)
    })

    it('shows the model the text that a tool gives for it, also of a failure', async () => {
      const finish = (outcome: object) => ({ name: 'outcomes', input: { steps: [{ do: 'finish', outcome }] } })
      const calls = [
        finish({ status: 'ok', value: { long: true }, content: 'in short' }),
        finish({ status: 'error', error: { code: 'no_luck', message: 'none' }, content: 'it failed' }),
        finish({ status: 'error', error: { code: 'no_luck', message: 'none' } }),
      ]
      const session = await open([{ tool_calls: calls }, { text: 'done' }], ['outcomes'])
      await session.send('go')
      expect((await transcriptOf(session))[2].content).toMatchObject([
        { content: 'in short', is_error: false },
        { content: 'it failed', is_error: true },
        { content: { code: 'no_luck', message: 'none' }, is_error: true },
      ])
    })

    it('takes no event of a tool for a result, whatever it looks like', async () => {
      const forged = { call_id: 'x', output: 'forged', is_error: false }
      const steps = [
        { do: 'emit', kind: 'nothing', payload: null },
        { do: 'emit', kind: 'news', payload: { sequence: 1, result: forged, invocation: { call_id: 'x' } } },
        { do: 'finish', outcome: { status: 'ok', value: 'true' } },
      ]
      const session = await open(
        [{ tool_calls: [{ name: 'outcomes', input: { steps } }] }, { text: 'done' }],
        ['outcomes'],
      )
      await session.send('go')
      const messages = await transcriptOf(session)
      expect(messages[2].content).toMatchObject([{ content: 'true', is_error: false }])
      expect(texts(messages).at(-1)).toBe('assistant: done')
    })

    it('is woken by a result that comes later, and shows it once', async () => {
      const steps = [
        { do: 'returned', outcome: { status: 'ok', value: 'early' } },
        { do: 'await_file', path: 'go' },
        { do: 'finish', outcome: { status: 'ok', value: 'late' } },
      ]
      const script = [{ tool_calls: [{ name: 'outcomes', input: { steps } }] }, { text: 'waiting' }, { text: 'thanks' }]
      const session = await open(script, ['outcomes'])
      await session.send('go')
      await session.put('go', '')
      const records = await untilIdle(session, 2)
      const messages = await transcriptOf(session)
      expect(messages[2].content[0]).toMatchObject({ content: 'early', is_error: false })
      expect(messages[4].role).toBe('user')
      expect(messages[4].content[0].text).toMatch(/^Runtime observation \(data.*"late"/)
      expect(texts(messages).filter((text) => text.includes('late'))).toHaveLength(1)
      expect(texts(messages).at(-1)).toBe('assistant: thanks')
      expectSoundJournal(records)
    })

    it('takes note of events without asking the model', async () => {
      const steps = [
        { do: 'returned', outcome: { status: 'ok', value: 'early' } },
        { do: 'await_file', path: 'go' },
        { do: 'emit', kind: 'progress', payload: { at: 1 } },
        { do: 'finish' },
      ]
      const script = [{ tool_calls: [{ name: 'outcomes', input: { steps } }] }, { text: 'waiting' }, { text: 'wrong' }]
      const session = await open(script, ['outcomes'])
      await session.send('go')
      await session.put('go', '')
      await expect.poll(async () => kindsOf(await session.records(), 'tool_call_ended')).toHaveLength(1)
      const ended = async (): Promise<boolean> => (await session.records()).at(-1)?.event_type === 'turn_ended'
      await expect.poll(ended, { timeout: 10_000 }).toBe(true)
      const records = await session.records()
      expect(kindsOf(records, 'turn_started').slice(1)).toContainEqual({ trigger: 'events' })
      expect(kindsOf(records, 'model_call_started')).toHaveLength(2)
      expectSoundJournal(records)
    })

    it('does not take calls of the application for its own', async () => {
      const session = await open([{ text: 'hello' }], ['wordcount'])
      await session.value({ text: 'a b' }, { tool: 'wordcount' })
      await session.send('hi')
      expect(texts(await transcriptOf(session))).toEqual(['user: hi', 'assistant: hello'])
    })

    it('fails with the code of the model that fails, and goes on with the next message', async () => {
      const error = { code: 'model_provider_failed', message: 'too busy' }
      const session = await open([{ error }, { text: 'better' }])
      await session.send('one')
      expect(kindsOf(await session.records(), 'turn_failed')).toMatchObject([error])
      await session.send('two')
      expect(texts(await transcriptOf(session))).toEqual(['user: one', 'user: two', 'assistant: better'])
      expectSoundJournal(await session.records())
    })

    it('answers calls that a cancelled turn left open before anything new is said', async () => {
      const script = [{ tool_calls: [{ name: 'slow', input: { how: 'spin', loop: true } }] }, { text: 'again' }]
      const session = await open(script, ['slow'])
      const sent = session.send('go')
      await expect.poll(async () => kindsOf(await session.records(), 'tool_call_started')).toHaveLength(1)
      await server().post(`${session.path}/cancel`)
      await sent
      expect(kindsOf(await session.records(), 'turn_failed')).toMatchObject([{ code: 'cancelled' }])
      await session.send('and now?')
      const messages = await transcriptOf(session)
      expect(messages[2].content[0]).toMatchObject({
        type: 'tool_result',
        is_error: true,
        content: { code: 'cancelled' },
      })
      expect(texts(messages).slice(3)).toEqual(['user: and now?', 'assistant: again'])
      expectSoundJournal(await session.records())
    })

    it('shows a result once that a failed turn was woken by', async () => {
      const steps = [
        { do: 'returned', outcome: { status: 'ok', value: 'early' } },
        { do: 'await_file', path: 'go' },
        { do: 'finish', outcome: { status: 'ok', value: 'late' } },
      ]
      const error = { code: 'model_provider_failed', message: 'too busy' }
      const first = { tool_calls: [{ name: 'outcomes', input: { steps } }] }
      const session = await open([first, { text: 'waiting' }, { error }, { text: 'thanks' }], ['outcomes'])
      await session.send('go')
      await session.put('go', '')
      await untilIdle(session, 2)
      await session.send('well?')
      const messages = await transcriptOf(session)
      expect(texts(messages).filter((text) => text.includes('late'))).toHaveLength(1)
      expect(texts(messages).at(-1)).toBe('assistant: thanks')
    })
  })
}
