import { describe, expect, it, vi } from 'vitest'
import { defaultLimits } from '../../../src/contract/limits.ts'
import { localTenant, type SessionId } from '../../../src/kernel/ids.ts'
import type { Json } from '../../../src/kernel/json.ts'
import type { Message } from '../../../src/contract/message.ts'
import { openMemoryJournal } from '../../../src/journal/memory/memory-journal.ts'
import { dataOf, type JournalRecord, type NewRecord } from '../../../src/journal/record.ts'
import { parseCreateRequest } from '../../../src/session/create-request.ts'
import { expectSoundJournal } from '../../support/journal-checks.ts'
import { type Harness, sharedHarnesses, toolNamed } from '../../support/session-harness.ts'

const open = sharedHarnesses()

const use = (name: string) => ({ tool_calls: [{ name, input: {} }] })

/** A server that finds the first records of a journal, as a crash would leave them. */
async function serverAfter(id: SessionId, records: readonly JournalRecord[]): Promise<Harness> {
  const journal = openMemoryJournal({ limits: defaultLimits })
  for (const [index, { event_type: kind, data, origin }] of records.entries()) {
    const record = { kind, data, ...(origin === undefined ? {} : { origin }) } as unknown as NewRecord
    const create = { tenant: localTenant, labels: {} }
    await journal.append({ session: id, records: [record], status: 'creating', ...(index === 0 ? { create } : {}) })
  }
  return open({ journal })
}

/** Every use has one result, in the message after it (cases D-27). */
function expectAnswered(messages: readonly Message[]): void {
  for (const [index, message] of messages.entries()) {
    const uses = message.content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []))
    const results = messages[index + 1]?.content.flatMap((block) =>
      block.type === 'tool_result' ? [block.tool_use_id] : [],
    )
    if (uses.length > 0) expect(results).toEqual(uses)
  }
}

describe('a session that a crash left', () => {
  it('is failed while it was created, idle while it ran, ended while it ended; a read is enough to say so', async () => {
    const transcript = [{ role: 'user', content: [{ type: 'text', text: 'seed' }] }]
    await using whole = open()
    const id = await whole.create({ transcript, script: [{ error: { code: 'down', message: 'no' } }] })
    await whole.send(id, 'go')
    await whole.end(id)
    const records = await whole.records(id)
    const sequenceOf = (kind: string): number => records.find((record) => record.event_type === kind)?.sequence ?? 0
    for (const cut of records.keys()) {
      const last = cut + 1
      const expected =
        last < sequenceOf('session_creation_ended')
          ? 'failed'
          : last < sequenceOf('session_end_started')
            ? 'idle'
            : 'ended'
      await using after = await serverAfter(id, records.slice(0, last))
      const { messages } = await after.service.transcript(localTenant, id)
      expect(messages.slice(0, 1), `cut after ${last}`).toEqual(last === 1 ? [] : transcript)
      expect((await after.service.get(localTenant, id)).status, `cut after ${last}`).toBe(expected)
      expectSoundJournal(await after.records(id))
      const answer = { status: 204, body: '' }
      if (expected === 'failed')
        await after.once(`session:${id}:delete`, async (claim) => {
          await after.service.remove(localTenant, id, claim, answer)
          return { answer, settled: true }
        })
    }
  })

  it('goes on from any record of parallel calls, a background tool, a cancellation and an end; nothing is sent again', async () => {
    await using whole = open()
    const script: Json = [
      { tool_calls: ['a', 'b', 'c'].map((name) => ({ name, input: {} })) },
      { text: 'waiting' },
      { text: 'woken' },
      use('a'),
      { text: 'done' },
    ]
    const id = await whole.create({ tools: ['a', 'b', 'c'].map((name) => toolNamed(name)), script })
    const sent = whole.send(id, 'go')
    const hands = [await whole.binding.next(), await whole.binding.next(), await whole.binding.next()]
    await hands[0]?.services.finish('{"status":"ok","value":1}')
    hands[1]?.end({ type: 'failure', error: { code: 'tool_error', message: 'broke' } })
    await hands[2]?.services.returned('{"status":"ok","value":3}')
    await sent
    await hands[2]?.services.emitResult('{"status":"ok","value":4}')
    await vi.waitFor(async () => expect(JSON.stringify(await whole.records(id))).toContain('woken'))
    await vi.waitFor(async () => expect((await whole.records(id)).at(-1)?.event_type).toBe('turn_ended'))
    const second = whole.send(id, 'more')
    await whole.binding.next()
    await whole.cancel(id)
    await second
    await whole.end(id)
    const records = await whole.records(id)
    expectSoundJournal(records)
    for (const cut of records.keys()) {
      await using after = await serverAfter(id, records.slice(0, cut + 1))
      const { status } = await after.service.get(localTenant, id)
      const recovered = await after.records(id)
      expect(recovered.slice(0, cut + 1)).toEqual(
        records.slice(0, cut + 1).map((record) => ({ ...record, recorded_at_ms: expect.any(Number) as number })),
      )
      expectSoundJournal(recovered)
      expect(after.binding.calls, `cut after ${cut + 1}`).toEqual([])
      if (status !== 'idle') continue
      after.binding.script = async () => ({ type: 'failure', error: { code: 'tool_error', message: 'again' } })
      await after.send(id, 'go on')
      const { messages } = await after.service.transcript(localTenant, id)
      expectAnswered(messages)
      expectSoundJournal(await after.records(id))
    }
  })

  it("tells whose model call was open: a tool's has the tool as origin", async () => {
    const journal = openMemoryJournal({ limits: defaultLimits })
    const before = open({ journal })
    const id = await before.create({ tools: [toolNamed('t')] })
    void before.call(id, 't', {})
    await before.binding.next()
    const origin = { kind: 'tool', sequence: 5 } as const
    const data = {
      system: '',
      tools: [],
      messages: 0,
      context: { through_sequence: 0, delta: { keep: 0, append: [] } },
      tool_sequence: 5,
    }
    await journal.append({ session: id, records: [{ kind: 'model_call_started', data, origin }] })
    await using after = open({ journal })
    await after.service.get(localTenant, id)
    const failed = (await after.records(id)).find((record) => record.event_type === 'model_call_failed')
    expect(failed).toMatchObject({ data: { sequence: 6, code: 'interrupted', ambiguous: true }, origin })
  })
})

describe('a session that cannot be created', () => {
  it('leaves no credentials, no session and its key free', async () => {
    let isBroken = true
    await using harness = open({ fault: () => (isBroken ? 'disk full' : undefined) })
    const request = parseCreateRequest({
      model: { provider: 'scripted', name: 's', api_key: 'k', script: [{ text: 'a' }] },
    })
    const create = () =>
      harness.once(
        'create_session',
        async (claim) => ({
          answer: { status: 200, body: (await harness.service.create(localTenant, request, claim)).session_id },
        }),
        'key',
      )
    await expect(create()).rejects.toMatchObject({ code: 'storage_unavailable', retryable: true })
    expect([harness.secrets.size, harness.sessions.all.length]).toEqual([0, 0])
    isBroken = false
    expect(await harness.service.list(localTenant, {})).toEqual([])
    const { body } = await create()
    expect((await create()).body).toBe(body)
    expect([...harness.secrets.keys()]).toEqual([body])
  })
})

describe('what a session is given', () => {
  it('reaches the model: system, response format, tools and the transcript that it began with', async () => {
    await using harness = open()
    const transcript = [
      { role: 'user', content: [{ type: 'text', text: 'before' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'yes' }] },
    ]
    const response_format = { type: 'json_schema', schema: { type: 'object' } }
    const id = await harness.create({ transcript, system: 'be kind', response_format, tools: [toolNamed('t')] })
    await harness.send(id, 'now')
    const started = (await harness.records(id)).flatMap((record) => dataOf(record, 'model_call_started') ?? [])
    expect(started).toMatchObject([
      {
        system: 'be kind',
        response_format,
        tools: [{ name: 't' }],
        messages: 3,
        context: { delta: { keep: 3, append: [] } },
      },
    ])
    const { messages } = await harness.service.transcript(localTenant, id)
    expect(messages.slice(0, 2)).toEqual(transcript)
  })

  it('bounds the time of a turn, which then fails and takes every open tool with it', async () => {
    await using harness = open({ limits: { turnSecs: 1 } })
    const script: Json = [use('t'), { text: 'ok' }]
    const id = await harness.create({ tools: [toolNamed('t')], script })
    const sent = harness.send(id, 'go')
    const hand = await harness.binding.next()
    await sent
    expect(await hand.cancelled).toBe('cancelled')
    await vi.waitFor(async () =>
      expect((await harness.records(id)).at(-1)).toMatchObject({
        event_type: 'turn_failed',
        data: { code: 'timeout', message: expect.stringContaining('BRAIN_MAX_TURN_SECS'), ambiguous: false },
      }),
    )
    expectSoundJournal(await harness.records(id))
  })
})
