import { describe, expect, it } from 'vitest'
import { defaultLimits } from '../../../src/contract/limits.ts'
import { localTenant, type TenantId } from '../../../src/kernel/ids.ts'
import type { Json } from '../../../src/kernel/json.ts'
import { openMemoryJournal } from '../../../src/journal/memory/memory-journal.ts'
import { startsWithoutOneEnd } from '../../support/journal-checks.ts'
import { openHarness, toolNamed } from '../../support/session-harness.ts'

describe('a session', () => {
  it('is created with its environments set up, and the key of its model nowhere in the journal', async () => {
    await using harness = openHarness()
    const id = await harness.create({ tools: [toolNamed('t')], labels: { team: 'a' } })
    expect(await harness.kinds(id)).toEqual([
      'session_creation_started',
      'environment_setup_started',
      'environment_setup_ended',
      'session_creation_ended',
    ])
    expect(await harness.service.get(localTenant, id)).toEqual({ session_id: id, status: 'idle', last_sequence: 4 })
    expect(JSON.stringify(await harness.records(id))).not.toContain('api_key')
  })

  it('begins with the given transcript', async () => {
    await using harness = openHarness()
    const transcript = [{ role: 'user', content: [{ type: 'text', text: 'before' }] }]
    const id = await harness.create({ transcript })
    expect((await harness.kinds(id))[1]).toBe('transcript_delta')
    expect((await harness.service.transcript(localTenant, id)).messages).toEqual(transcript)
  })

  it.each<[string, Record<string, unknown>, string]>([
    ['an unknown provider', { model: { provider: 'nobody', name: 'm', api_key: 'k' } }, 'invalid_request'],
    ['an unknown member', { colour: 'red' }, 'invalid_request'],
    ['a name with white space', { model: { provider: 'scripted', name: 'a b', api_key: 'k' } }, 'invalid_request'],
    ['two tools of one name', { tools: [toolNamed('t'), toolNamed('t')] }, 'invalid_request'],
    [
      'a tool without placement',
      { tools: [{ name: 't', description: 'd', input_schema: {}, placements: {} }] },
      'invalid_request',
    ],
    ['a tool placed nowhere', { tools: [toolNamed('t')], environments: [] }, 'invalid_request'],
    ['an environment without lifecycle', { environments: [{ name: 'box', driver: 'brain' }] }, 'invalid_request'],
    [
      'a host environment',
      { environments: [{ name: 'box', driver: 'host', lifecycle: 'automatic', host_id: 'h' }] },
      'unsupported',
    ],
    ['a loop of another kind', { agentloop: { implementation: { type: 'host_function' } } }, 'unsupported'],
    ['a built-in loop of another name', { agentloop: { implementation: { type: 'builtin' } } }, 'invalid_request'],
    [
      'a component loop without its entry',
      { agentloop: { implementation: { type: 'brain_component' } } },
      'invalid_request',
    ],
    [
      'a component loop that is not admitted',
      {
        agentloop: {
          implementation: { type: 'brain_component', entrypoint: 'turn', id: 'a'.repeat(64) },
          environment: 'box',
        },
      },
      'invalid_request',
    ],
    ['a distributed tool', { config: { tools: ['echo'] } }, 'invalid_request'],
    [
      'a transcript that leaves a tool_use open',
      { transcript: [{ role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 't', input: {} }] }] },
      'invalid_transcript',
    ],
    ['a label "__proto__"', { labels: JSON.parse('{"__proto__":"x"}') as unknown }, 'invalid_request'],
    [
      'a placement "__proto__"',
      JSON.parse('{"tools":[{"name":"t","placements":{"__proto__":{}}}]}'),
      'invalid_request',
    ],
    [
      'seventeen labels',
      { labels: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, ''])) },
      'invalid_request',
    ],
  ])('is refused for %s, and nothing is written', async (_what, parts, code) => {
    await using harness = openHarness()
    await expect(harness.create(parts)).rejects.toMatchObject({ code })
    expect(await harness.service.list(localTenant, {})).toEqual([])
  })

  it('does not exist for another tenant', async () => {
    await using harness = openHarness()
    const id = await harness.create()
    await expect(harness.service.get('other' as TenantId, id)).rejects.toMatchObject({ code: 'not_found' })
    expect(await harness.service.list('other' as TenantId, {})).toEqual([])
  })

  it('ends once, whatever is asked again, and is deleted only then', async () => {
    await using harness = openHarness()
    const id = await harness.create({ tools: [toolNamed('t')] })
    const remove = () =>
      harness.once(`session:${id}:delete`, async (claim) => {
        const answer = { status: 204, body: '' }
        await harness.service.remove(localTenant, id, claim, answer)
        return { answer, settled: true }
      })
    await expect(remove()).rejects.toMatchObject({ code: 'invalid_request' })
    const open = harness.call(id, 't', {})
    await harness.binding.next()
    await harness.end(id)
    await harness.end(id)
    expect((await open).outcome).toEqual({ status: 'cancelled' })
    expect((await harness.kinds(id)).slice(4)).toEqual([
      'tool_call_started',
      'tool_cancel_started',
      'tool_call_ended',
      'tool_cancel_ended',
      'session_end_started',
      'environment_detach_started',
      'environment_detach_ended',
      'session_ended',
    ])
    await expect(harness.send(id, 'hi')).rejects.toMatchObject({ code: 'invalid_request' })
    await remove()
    await expect(harness.service.get(localTenant, id)).rejects.toMatchObject({ code: 'not_found' })
  })

  it('ends once when it is asked twice at the same time', async () => {
    await using harness = openHarness()
    const id = await harness.create()
    await Promise.all([harness.end(id), harness.end(id), harness.end(id)])
    const kinds = await harness.kinds(id)
    for (const kind of ['session_end_started', 'environment_detach_started', 'session_ended'])
      expect(kinds.filter((candidate) => candidate === kind)).toHaveLength(1)
  })

  it('takes neither messages nor calls from the moment that its end was asked for', async () => {
    await using harness = openHarness()
    const id = await harness.create({ tools: [toolNamed('t')] })
    const results = await Promise.allSettled([
      harness.call(id, 't', {}),
      harness.end(id),
      harness.send(id, 'hi'),
      harness.call(id, 't', {}),
      harness.cancel(id),
    ])
    expect(results[1]?.status).toBe('fulfilled')
    const records = await harness.records(id)
    expect(records.at(-1)?.event_type).toBe('session_ended')
    expect(startsWithoutOneEnd(records)).toEqual([])
    expect((await harness.service.get(localTenant, id)).status).toBe('ended')
    expect(results[2]?.status === 'rejected' || !records.some((record) => record.event_type === 'turn_ended')).toBe(
      true,
    )
  })

  it('does not send a call that a cancellation has overtaken', async () => {
    await using harness = openHarness()
    const id = await harness.create({ tools: [toolNamed('t')] })
    for (let round = 0; round < 50; round++) {
      const call = harness.call(id, 't', {})
      for (let step = 0; step < round % 7; step++) await Promise.resolve()
      await harness.cancel(id)
      const sent = harness.binding.calls.splice(0)
      if (sent.length === 0 && (await harness.records(id)).at(-1)?.event_type === 'session_interrupted') {
        // The cancellation came before the call: it is not one of those that it stops.
        const hand = await harness.binding.next()
        await hand.services.finish(undefined)
      }
      expect(['cancelled', 'ok']).toContain((await call).outcome?.status)
    }
    expect(startsWithoutOneEnd(await harness.records(id))).toEqual([])
  })

  it('does not let a cancellation wait for messages that are queued behind the turn', async () => {
    await using harness = openHarness()
    const script = [{ tool_calls: [{ name: 't', input: {} }] }]
    const id = await harness.create({ tools: [toolNamed('t')], script })
    const first = harness.send(id, '1')
    const second = harness.send(id, '2')
    await harness.binding.next()
    await harness.cancel(id)
    await first
    const hand = await harness.binding.next()
    expect(hand.call.session).toBe(id)
    await harness.end(id)
    await second
    expect(startsWithoutOneEnd(await harness.records(id))).toEqual([])
  })

  it('leaves memory again after a turn that later records started', async () => {
    await using harness = openHarness()
    const script = [{ tool_calls: [{ name: 't', input: {} }] }, { text: 'a' }, { text: 'b' }, { text: 'c' }]
    const id = await harness.create({ tools: [toolNamed('t')], script })
    const sent = harness.send(id, 'go')
    const hand = await harness.binding.next()
    await hand.services.returned(undefined)
    await sent
    await hand.services.finish('{"status":"ok","value":1}')
    await expect.poll(async () => (await harness.kinds(id)).filter((kind) => kind === 'turn_ended').length).toBe(2)
    await harness.send(id, 'again')
    expect((await harness.kinds(id)).filter((kind) => kind === 'session_resumed')).toHaveLength(3)
  })

  it('keeps a time to live of a month', async () => {
    await using harness = openHarness()
    const id = await harness.create({ idle_ttl_ms: 30 * 86_400_000 })
    await harness.send(id, 'hi')
    await new Promise((resolve) => setTimeout(resolve, 30))
    expect(await harness.kinds(id)).not.toContain('session_suspended')
  })

  it('is cancelled harmlessly while it is idle', async () => {
    await using harness = openHarness()
    const id = await harness.create()
    await harness.cancel(id)
    expect((await harness.kinds(id)).slice(4)).toEqual(['session_interrupted'])
    await harness.send(id, 'hi')
    expect((await harness.service.get(localTenant, id)).status).toBe('idle')
  })

  it('stays in memory for its time to live, and says when it leaves', async () => {
    await using harness = openHarness()
    const id = await harness.create({ idle_ttl_ms: 400 })
    await harness.send(id, '1')
    await harness.send(id, '2')
    const resumed = async (): Promise<number> =>
      (await harness.kinds(id)).filter((kind) => kind === 'session_resumed').length
    expect(await resumed()).toBe(0)
    await expect.poll(() => harness.kinds(id)).toContain('session_suspended')
    await harness.send(id, '3')
    expect(await resumed()).toBe(1)
  })

  it('takes nothing new while the server drains', async () => {
    await using harness = openHarness()
    const id = await harness.create()
    await harness.service.drain(1000)
    await expect(harness.send(id, 'hi')).rejects.toMatchObject({ code: 'overloaded', retryable: true })
    await expect(harness.create()).rejects.toMatchObject({ code: 'overloaded' })
  })
})

describe('after a crash', () => {
  /** Two servers over one journal, the first of which is never asked again. */
  async function crash(leave: (harness: ReturnType<typeof openHarness>) => Promise<unknown>) {
    const journal = openMemoryJournal({ limits: defaultLimits })
    const before = openHarness({ journal })
    await leave(before)
    return { journal, after: openHarness({ journal }) }
  }

  it('an open call is closed as interrupted, reads as unknown, and is not sent again', async () => {
    const { after } = await crash(async (before) => {
      const id = await before.create({ tools: [toolNamed('t')] })
      void before.call(id, 't', {})
      await before.binding.next()
    })
    await using harness = after
    const [row] = await harness.service.list(localTenant, {})
    if (row === undefined) throw new Error('the session is gone')
    const { last_sequence: last } = await harness.service.get(localTenant, row.session_id as never)
    const records = await harness.records(row.session_id as never)
    expect(records.at(-1)).toMatchObject({
      sequence: last,
      event_type: 'tool_call_failed',
      data: { sequence: 5, code: 'interrupted', ambiguous: true },
    })
    const answer = await harness.calls.rebuild(
      { type: 'call', status: 200, session: row.session_id as never, sequence: 5 },
      'released',
    )
    expect(JSON.parse(answer.body)).toMatchObject({ finished: true, outcome: { status: 'unknown' } })
    expect(harness.binding.calls).toEqual([])
  })

  it('an idle session whose background call was open is closed at the start, so that lists are right', async () => {
    const { after } = await crash(async (before) => {
      const script: Json = [{ tool_calls: [{ name: 't', input: {} }] }, { text: 'ok' }]
      const id = await before.create({ tools: [toolNamed('t')], script })
      const sent = before.send(id, 'go')
      const { services } = await before.binding.next()
      await services.returned(undefined)
      await sent
    })
    await using harness = after
    await harness.sessions.recover()
    const [row] = await harness.service.list(localTenant, {})
    const records = await harness.records(row?.session_id as never)
    expect(records.at(-1)).toMatchObject({ event_type: 'tool_call_failed', data: { code: 'interrupted' } })
    expect(row).toMatchObject({ status: 'idle', last_sequence: records.length })
  })

  it('a running turn fails with interrupted; the next turn shows the model what became of the call', async () => {
    const { after } = await crash(async (before) => {
      const script: Json = [{ tool_calls: [{ name: 't', input: {} }] }, { text: 'ok' }]
      const id = await before.create({ tools: [toolNamed('t')], script })
      void before.send(id, 'go')
      await before.binding.next()
    })
    await using harness = after
    await harness.sessions.recover()
    const [row] = await harness.service.list(localTenant, {})
    const id = row?.session_id as never
    expect(row?.status).toBe('idle')
    expect((await harness.kinds(id)).slice(-3)).toEqual(['tool_call_failed', 'activation_failed', 'turn_failed'])
    await harness.send(id, 'and now?')
    const { messages } = await harness.service.transcript(localTenant, id)
    expect(messages[2]?.content[0]).toMatchObject({ type: 'tool_result', is_error: true, content: { code: 'unknown' } })
    expect(messages[3]?.content[0]).toMatchObject({ text: 'and now?' })
    expect(harness.binding.calls).toEqual([])
  })

  it('every start has one end, whatever record the crash came after', async () => {
    const journal = openMemoryJournal({ limits: defaultLimits })
    const whole = openHarness({ journal })
    const id = await whole.create({
      tools: [toolNamed('t')],
      script: [{ tool_calls: [{ name: 't', input: {} }] }, { text: 'ok' }],
    })
    whole.binding.script = async ({ services }) => {
      await services.finish('{"status":"ok","value":1}')
      return { type: 'result', text: '' }
    }
    await whole.send(id, 'go')
    await whole.end(id)
    const records = await whole.records(id)
    for (let cut = 1; cut <= records.length; cut++) {
      const copy = openMemoryJournal({ limits: defaultLimits })
      for (const { event_type: kind, data, origin } of records.slice(0, cut)) {
        const first = kind === 'session_creation_started'
        const reserved = kind !== 'output_emitted'
        const record = reserved ? { kind, data, origin } : { kind: 'event', event_type: kind, data, origin }
        await copy.append({
          session: id,
          records: [JSON.parse(JSON.stringify(record)) as never],
          ...(first ? { create: { tenant: localTenant, labels: {} }, status: 'creating' as const } : {}),
        })
      }
      await using harness = openHarness({ journal: copy })
      await harness.service.get(localTenant, id)
      const after = await harness.records(id)
      expect(startsWithoutOneEnd(after), `cut after record ${cut}`).toEqual([])
    }
  })
})
