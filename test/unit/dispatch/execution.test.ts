import { describe, expect, it, vi } from 'vitest'
import { localTenant, type SessionId } from '../../../src/kernel/ids.ts'
import type { ClaimInHand } from '../../../src/session/requests.ts'
import { openHarness, toolNamed, type Harness } from '../../support/session-harness.ts'

const CREATED = [
  'session_creation_started',
  'environment_setup_started',
  'environment_setup_ended',
  'session_creation_ended',
]
const outputSchema = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } }

async function started(harness: Harness, options: Parameters<typeof toolNamed>[1] = {}) {
  const id = await harness.create({ tools: [toolNamed('t', options)] })
  const answer = harness.call(id, 't', {})
  return { id, answer, hand: await harness.binding.next() }
}

const after = async (harness: Harness, id: SessionId) => (await harness.kinds(id)).slice(CREATED.length)

describe('a direct call', () => {
  it('is recorded as started, result, ended when its tool finishes with a value', async () => {
    await using harness = openHarness()
    const { id, answer, hand } = await started(harness)
    await hand.services.finish('{"status":"ok","value":{"n":1}}')
    hand.end({ type: 'result', text: '' })
    const given = await answer
    expect(await after(harness, id)).toEqual(['tool_call_started', 'tool_result_emitted', 'tool_call_ended'])
    expect(given).toMatchObject({
      sequence: 5,
      finished: true,
      outcome: { status: 'ok', value: null },
      results: [{ output: { n: 1 }, is_error: false }],
    })
    const [start, result] = (await harness.records(id)).slice(CREATED.length)
    expect(start?.origin).toEqual({ kind: 'application' })
    expect(result?.origin).toEqual({ kind: 'tool', sequence: 5 })
  })

  it('is released by a return and stays open until it finishes', async () => {
    await using harness = openHarness()
    const { id, answer, hand } = await started(harness)
    await hand.services.returned('{"status":"ok","value":1}')
    expect(await answer).toMatchObject({ finished: false, results: [{ output: 1 }] })
    expect(await hand.services.emit('note', '{"late":true}')).toBe(8)
    await hand.services.finish(undefined)
    expect(await after(harness, id)).toEqual([
      'tool_call_started',
      'tool_result_emitted',
      'tool_call_returned',
      'note',
      'tool_call_ended',
    ])
    await expect(hand.services.returned(undefined)).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it('refuses a second return', async () => {
    await using harness = openHarness()
    const { hand } = await started(harness)
    await hand.services.returned(undefined)
    await expect(hand.services.returned(undefined)).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it.each([
    ['emit', (services) => services.emit('note', '1')],
    ['emitResult', (services) => services.emitResult('{"status":"ok","value":1}')],
    ['finish', (services) => services.finish(undefined)],
    ['model', (services) => services.model('{"messages":[]}')],
    ['environments', (services) => services.environments('{}')],
  ] as const satisfies readonly (readonly [
    string,
    (services: Awaited<ReturnType<typeof started>>['hand']['services']) => Promise<unknown>,
  ])[])('refuses %s after finish, and writes nothing', async (_name, use) => {
    await using harness = openHarness()
    const { id, hand } = await started(harness)
    await hand.services.finish(undefined)
    await expect((async () => use(hand.services))()).rejects.toMatchObject({ code: 'invalid_request' })
    expect(await after(harness, id)).toEqual(['tool_call_started', 'tool_call_ended'])
  })

  it.each(['session_ended', 'tool_call_ended', 'turn_started', 'environment_observation', 'kv_set', 'a b', ''])(
    'refuses to emit the kind %j',
    async (kind) => {
      await using harness = openHarness()
      const { hand } = await started(harness)
      await expect(hand.services.emit(kind, '1')).rejects.toMatchObject({ code: 'invalid_request' })
      expect(await hand.services.emit('output_emitted', '1')).toBe(6)
    },
  )

  it.each([
    'not json',
    '{"status":"ok"}',
    '{"status":"ok","value":1,"more":2}',
    '{"status":"error","error":{"code":"a b","message":""}}',
    '{"status":"unknown"}',
    '7',
  ])('ends invalid_output when it finishes with %s', async (text) => {
    await using harness = openHarness()
    const { answer, hand } = await started(harness)
    await expect(hand.services.finish(text)).rejects.toMatchObject({ code: 'invalid_output' })
    expect((await answer).outcome).toMatchObject({ status: 'error', error: { code: 'invalid_output' } })
  })

  it('refuses a malformed result and stays open', async () => {
    await using harness = openHarness()
    const { id, hand } = await started(harness)
    await expect(hand.services.emitResult('{"status":"ok"}')).rejects.toMatchObject({ code: 'invalid_output' })
    expect(await after(harness, id)).toEqual(['tool_call_started'])
    await hand.services.finish(undefined)
  })

  it('ends invalid_output when its value does not satisfy the output schema', async () => {
    await using harness = openHarness()
    const { answer, hand } = await started(harness, { output_schema: outputSchema })
    await expect(hand.services.finish('{"status":"ok","value":{"n":"x"}}')).rejects.toMatchObject({
      code: 'invalid_output',
    })
    const { outcome } = await answer
    expect(outcome).toMatchObject({ status: 'error', error: { code: 'invalid_output' } })
    expect(JSON.stringify(outcome)).toContain('/n')
  })

  it('lets a failure bypass the output schema, and keeps its content as a result', async () => {
    await using harness = openHarness()
    const { id, answer, hand } = await started(harness, { output_schema: outputSchema })
    await hand.services.finish('{"status":"error","error":{"code":"sad","message":"no"},"content":"could not"}')
    expect(await after(harness, id)).toEqual(['tool_call_started', 'tool_result_emitted', 'tool_call_ended'])
    expect((await answer).results[0]).toMatchObject({ is_error: true, content: 'could not', output: { code: 'sad' } })
  })

  it('records an invalid input with a start and an end, and calls nobody', async () => {
    await using harness = openHarness()
    const id = await harness.create({ tools: [toolNamed('t', { input_schema: outputSchema })] })
    const { outcome } = await harness.call(id, 't', { n: 'x' })
    expect(outcome).toMatchObject({ status: 'error', error: { code: 'invalid_input' } })
    expect(await after(harness, id)).toEqual(['tool_call_started', 'tool_call_ended'])
    expect(harness.binding.calls).toEqual([])
  })

  it('records an input over the limit the same way, naming the limit', async () => {
    await using harness = openHarness({ limits: { executionInputBytes: 1024 } })
    const id = await harness.create({ tools: [toolNamed('t')] })
    const { outcome } = await harness.call(id, 't', { text: 'x'.repeat(1024) })
    expect(outcome).toMatchObject({ status: 'error', error: { code: 'invalid_input' } })
    expect(JSON.stringify(outcome)).toContain('BRAIN_MAX_EXECUTION_INPUT_BYTES')
    expect(harness.binding.calls).toEqual([])
  })

  it('times out: the end first, then the cancellation and its end', async () => {
    await using harness = openHarness()
    const id = await harness.create({ tools: [toolNamed('t')] })
    const began = performance.now()
    const { outcome } = await harness.call(id, 't', {}, { deadlineMs: 30 })
    expect(outcome).toEqual({ status: 'timeout' })
    expect(performance.now() - began).toBeGreaterThanOrEqual(29)
    const hand = await harness.binding.next()
    expect(await hand.cancelled).toBe('timeout')
    await expect(hand.services.finish(undefined)).rejects.toMatchObject({ code: 'invalid_request' })
    await vi.waitFor(async () =>
      expect(await after(harness, id)).toEqual([
        'tool_call_started',
        'tool_cancel_started',
        'tool_call_ended',
        'tool_cancel_ended',
      ]),
    )
  })

  it('fails at its deadline, certainly, when nothing of it has left', async () => {
    await using harness = openHarness()
    const error = { code: 'tool_unreachable', message: 'Cannot reach tool "t"', retryable: false }
    harness.binding.unsent = { type: 'failure', error }
    const id = await harness.create({ tools: [toolNamed('t')] })
    const answer = await harness.call(id, 't', {}, { deadlineMs: 10 })
    expect(answer).toMatchObject({ finished: true, outcome: { status: 'error', error } })
    expect(await after(harness, id)).toEqual(['tool_call_started', 'tool_call_ended'])
  })

  it('is unknown when its executor is lost', async () => {
    await using harness = openHarness()
    const { answer, hand } = await started(harness)
    hand.end({ type: 'unknown', message: 'the box died' })
    expect((await answer).outcome).toEqual({ status: 'unknown', message: 'the box died' })
  })

  it('ignores what its executor gives back after it finished', async () => {
    await using harness = openHarness()
    const { id, hand } = await started(harness)
    await hand.services.finish('{"status":"ok","value":1}')
    hand.end({ type: 'unknown', message: 'late' })
    await harness.end(id)
    expect((await harness.kinds(id)).filter((kind) => kind === 'tool_call_ended')).toHaveLength(1)
  })

  it.each([
    ['a plain value', '{"a":1}', ['tool_result_emitted', 'tool_call_returned']],
    [
      'an ok outcome whose value looks like one',
      '{"status":"ok","value":{"status":"error"}}',
      ['tool_result_emitted', 'tool_call_returned'],
    ],
    ['nothing', '', ['tool_call_returned']],
    ['a failing outcome', '{"status":"error","error":{"code":"x","message":"y"}}', ['tool_call_ended']],
    ['no JSON', '{', ['tool_call_ended']],
  ])('takes %s that run gives back', async (_name, text, kinds) => {
    await using harness = openHarness()
    const { id, answer, hand } = await started(harness)
    hand.end({ type: 'result', text })
    await answer
    expect((await after(harness, id)).slice(1)).toEqual(kinds)
  })

  it('warns in its log when run returned and the call is open', async () => {
    await using harness = openHarness()
    const { id, answer, hand } = await started(harness)
    hand.services.note({ type: 'stdout', text: 'hello' })
    hand.end({ type: 'result', text: '1' })
    const { sequence } = await answer
    await harness.cancel(id)
    const log = harness.logs.get(`${id}/${sequence}`)
    expect(log?.stdout).toBe('hello')
    expect(log?.warnings[0]).toMatch(/"t".*finish/)
  })

  it('refuses emissions over the budget, stays open, and can still finish without a value', async () => {
    await using harness = openHarness({ limits: { emittedBytes: 100 } })
    const { answer, hand } = await started(harness)
    const text = JSON.stringify('x'.repeat(90))
    await hand.services.emit('n', text)
    await expect(hand.services.emit('n', text)).rejects.toMatchObject({ code: 'emit_limit' })
    await expect(hand.services.finish(`{"status":"ok","value":${text}}`)).rejects.toMatchObject({ code: 'emit_limit' })
    await hand.services.finish(undefined)
    expect((await answer).outcome).toEqual({ status: 'ok', value: null })
  })

  it.each([
    { status: 'error', error: { code: 'e', message: 'm', retryable: true } },
    { status: 'unknown', message: 'm' },
    { status: 'timeout' },
  ])('ends when it finishes badly, also with nothing left of the budget (%#)', async (outcome) => {
    await using harness = openHarness({ limits: { emittedBytes: 10 } })
    const { answer, hand } = await started(harness)
    await hand.services.finish(JSON.stringify({ ...outcome, content: 'for the model' }))
    expect(await answer).toMatchObject({ finished: true, outcome, results: [] })
  })

  it('ends emit_limit when what run gives back is over the budget', async () => {
    await using harness = openHarness({ limits: { emittedBytes: 10 } })
    const { answer, hand } = await started(harness)
    hand.end({ type: 'result', text: JSON.stringify('x'.repeat(90)) })
    expect((await answer).outcome).toMatchObject({ status: 'error', error: { code: 'emit_limit' } })
  })

  it('is open again when the storage refuses its finish, and the message names the storage', async () => {
    let broken = false
    await using harness = openHarness({ fault: () => (broken ? 'disk full' : undefined) })
    const { id, answer, hand } = await started(harness)
    broken = true
    await expect(hand.services.finish(undefined)).rejects.toMatchObject({ code: 'storage_unavailable' })
    broken = false
    await hand.services.finish('{"status":"ok","value":2}')
    expect((await answer).results[0]?.output).toBe(2)
    expect(await after(harness, id)).toEqual(['tool_call_started', 'tool_result_emitted', 'tool_call_ended'])
  })

  it('keeps one end in 200 races of finish and cancel', async () => {
    await using harness = openHarness()
    const id = await harness.create({ tools: [toolNamed('t')] })
    for (let round = 0; round < 200; round++) {
      const answer = harness.call(id, 't', {})
      const hand = await harness.binding.next()
      const finish = hand.services.finish('{"status":"ok","value":1}').catch(() => undefined)
      if (round % 3 > 0) await Promise.resolve()
      const cancel = harness.cancel(id)
      await Promise.all([finish, cancel])
      hand.end({ type: 'result', text: '' })
      expect(['ok', 'cancelled']).toContain((await answer).outcome?.status)
    }
    const records = await harness.records(id)
    const ends = records.filter((record) => record.event_type === 'tool_call_ended')
    expect(ends).toHaveLength(200)
    expect(new Set(ends.map((record) => (record.data as { sequence: number }).sequence)).size).toBe(200)
  })

  it('asks the model with the tool as origin, and the journal tells which tool', async () => {
    await using harness = openHarness()
    const id = await harness.create({ tools: [toolNamed('t')], script: [{ text: 'hi' }] })
    const answer = harness.call(id, 't', {})
    const hand = await harness.binding.next()
    const text = await hand.services.model('{"messages":[{"role":"user","content":[{"type":"text","text":"q"}]}]}')
    expect(JSON.parse(text)).toMatchObject({
      message: { content: [{ type: 'text', text: 'hi' }] },
      stop_reason: 'end_turn',
    })
    await expect(hand.services.model('{"messages":[]}')).rejects.toMatchObject({ code: 'invalid_request' })
    await hand.services.finish(undefined)
    await answer
    const [start] = (await harness.records(id)).filter((record) => record.event_type === 'model_call_started')
    expect(start?.data).toMatchObject({ tool_sequence: 5, system: '', tools: [] })
    expect(start?.origin).toEqual({ kind: 'tool', sequence: 5 })
  })

  it('answers an asynchronous call again while it runs', async () => {
    await using harness = openHarness()
    const id = await harness.create({ tools: [toolNamed('t')] })
    const work = {
      run: (claim: ClaimInHand) =>
        harness.calls.call(localTenant, id, { tool: 't', input: {}, wait: 'started' }, claim),
      rebuild: (answer: Parameters<Harness['calls']['rebuild']>[0]) => harness.calls.rebuild(answer, 'started'),
    }
    const first = await harness.once(`session:${id}:tool:t:call`, work, 'key')
    expect(first).toEqual({ status: 202, body: '5' })
    expect(await harness.once(`session:${id}:tool:t:call`, work, 'key')).toMatchObject(first)
    await harness.cancel(id)
    expect(await harness.once(`session:${id}:tool:t:call`, work, 'key')).toMatchObject(first)
  })

  it('tells a tool of a failed model call with the code of the record', async () => {
    await using harness = openHarness()
    const script = [{ error: { code: 'rate_limited', message: 'later' } }]
    const id = await harness.create({ tools: [toolNamed('t')], script })
    const answer = harness.call(id, 't', {})
    const hand = await harness.binding.next()
    const request = '{"messages":[{"role":"user","content":[{"type":"text","text":"q"}]}]}'
    await expect(hand.services.model(request)).rejects.toMatchObject({ name: 'ToolFailure', code: 'rate_limited' })
    await hand.services.finish(undefined)
    await answer
    expect(await harness.kinds(id)).toContain('model_call_failed')
  })

  it('goes on when its log cannot be written', async () => {
    await using harness = openHarness()
    harness.logs.set = () => {
      throw new Error('no space left on device')
    }
    const { answer, hand } = await started(harness)
    hand.services.note({ type: 'stdout', text: 'hello' })
    await hand.services.finish(undefined)
    hand.end({ type: 'result', text: '' })
    expect((await answer).outcome).toEqual({ status: 'ok', value: null })
    await new Promise((resolve) => setImmediate(resolve))
  })

  it('replays its answer under the same key, also from the journal alone', async () => {
    await using harness = openHarness()
    const id = await harness.create({ tools: [toolNamed('t')] })
    harness.binding.script = async ({ services }) => {
      await services.finish('{"status":"ok","value":9}')
      return { type: 'result', text: '' }
    }
    const scope = `session:${id}:tool:t:call`
    const work = {
      run: (claim: ClaimInHand) =>
        harness.calls.call(localTenant, id, { tool: 't', input: {}, wait: 'released' }, claim),
      rebuild: (answer: Parameters<Harness['calls']['rebuild']>[0]) => harness.calls.rebuild(answer, 'released'),
    }
    const first = await harness.once(scope, work, 'key')
    const second = await harness.once(scope, work, 'key')
    expect(second).toEqual(first)
    expect((await harness.kinds(id)).filter((kind) => kind === 'tool_call_started')).toHaveLength(1)
    await expect(harness.once(scope, work, 'key', 'other')).rejects.toMatchObject({ code: 'conflict' })
  })
})
