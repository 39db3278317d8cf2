import { describe, expect, it, vi } from 'vitest'
import { localTenant, type SessionId } from '../../../src/kernel/ids.ts'
import { dataOf } from '../../../src/journal/record.ts'
import { expectSoundJournal } from '../../support/journal-checks.ts'
import { type Harness, sharedHarnesses, toolNamed } from '../../support/session-harness.ts'

const open = sharedHarnesses()

const use = (...names: string[]) => ({ tool_calls: names.map((name) => ({ name, input: {} })) })
const question = '{"messages":[{"role":"user","content":[{"type":"text","text":"q"}]}]}'
const text = (length: number): string => JSON.stringify('x'.repeat(length - 2))
const limited = { code: 'emit_limit' }

const afterTurns = (harness: Harness, id: SessionId, count: number): Promise<void> =>
  vi.waitFor(async () => {
    expect((await harness.kinds(id)).filter((kind) => kind === 'turn_ended')).toHaveLength(count)
  }, 5000)

describe('the bytes of an activation', () => {
  it('are shared by its tools and its loop, and a refused emission costs nothing', async () => {
    await using harness = open({ limits: { emittedBytes: 1000 } })
    const id = await harness.create({
      tools: [toolNamed('a'), toolNamed('b')],
      script: [use('a', 'b'), { text: 'ok' }],
    })
    const sent = harness.send(id, 'go')
    const [one, two] = [await harness.binding.next(), await harness.binding.next()]
    await one.services.emit('n', text(499))
    await expect(two.services.emit('n', text(500))).rejects.toMatchObject(limited)
    await two.services.emit('n', text(399))
    await expect(one.services.emitResult(`{"status":"ok","value":${text(90)}}`)).rejects.toMatchObject(limited)
    await one.services.finish(undefined)
    await two.services.finish(undefined)
    await sent
    // 900 are used, and the loop's own output would take more than 100.
    expect((await harness.records(id)).at(-1)).toMatchObject({ event_type: 'turn_failed', data: limited })
    await harness.send(id, 'again')
    expect((await harness.kinds(id)).at(-1)).toBe('turn_ended')
  })

  it('are those of the first activation for a tool that goes on, whatever activations it wakes', async () => {
    await using harness = open({ limits: { emittedBytes: 600 } })
    const id = await harness.create({ tools: [toolNamed('t')], script: [use('t'), { text: 'ok' }] })
    const sent = harness.send(id, 'go')
    const { services } = await harness.binding.next()
    await services.returned(undefined)
    await sent
    await services.emit('n', text(300))
    await afterTurns(harness, id, 2)
    await expect(services.emit('n', text(300))).rejects.toMatchObject(limited)
    await expect(services.finish(`{"status":"ok","value":${text(300)}}`)).rejects.toMatchObject(limited)
    await services.finish(undefined)
    await afterTurns(harness, id, 3)
    expectSoundJournal(await harness.records(id))
  })

  it('are not spent on what the storage refused', async () => {
    let isBroken = false
    await using harness = open({
      limits: { emittedBytes: 1000 },
      fault: () => (isBroken ? 'disk full' : undefined),
    })
    const id = await harness.create({ tools: [toolNamed('t')] })
    const answer = harness.call(id, 't', {})
    const { services } = await harness.binding.next()
    const outcome = `{"status":"ok","value":${text(800)}}`
    isBroken = true
    const refused = { code: 'storage_unavailable' }
    await expect(services.emit('n', text(900))).rejects.toMatchObject(refused)
    await expect(services.emitResult(outcome)).rejects.toMatchObject(refused)
    await expect(services.returned(outcome)).rejects.toMatchObject(refused)
    await expect(services.finish(outcome)).rejects.toMatchObject(refused)
    isBroken = false
    await services.finish(outcome)
    expect((await answer).outcome).toEqual({ status: 'ok', value: null })
  })

  it('end a call with emit_limit whose returned value goes over them', async () => {
    await using harness = open({ limits: { emittedBytes: 100 } })
    const id = await harness.create({ tools: [toolNamed('t')] })
    const answer = harness.call(id, 't', {})
    const { services } = await harness.binding.next()
    await expect(services.returned(`{"status":"ok","value":${text(200)}}`)).rejects.toMatchObject(limited)
    expect((await answer).outcome).toMatchObject({ status: 'error', error: limited })
  })
})

describe('the model calls of an activation', () => {
  it('are shared by its loop and its tools, also after it, and never renewed', async () => {
    await using harness = open({ limits: { modelCalls: 4 } })
    const id = await harness.create({ tools: [toolNamed('t')], script: [use('t'), { text: 'ok' }] })
    const sent = harness.send(id, 'go')
    const { services } = await harness.binding.next()
    await services.model(question)
    await services.returned(undefined)
    await sent
    await services.model(question)
    await expect(services.model(question)).rejects.toMatchObject({ code: 'model_call_limit' })
    await services.emitResult('{"status":"ok","value":1}')
    await afterTurns(harness, id, 2)
    await expect(services.model(question)).rejects.toMatchObject({ code: 'model_call_limit' })
    await services.finish(undefined)
    await afterTurns(harness, id, 3)
    const starts = (await harness.records(id)).flatMap((record) => dataOf(record, 'model_call_started') ?? [])
    // The loop's two and the tool's two of the first, and one of the activation that the tool's result woke.
    expect(starts.map((start) => start.tool_sequence !== undefined)).toEqual([false, true, false, true, false])
  })
})

describe('outcomes', () => {
  const reserved = ['ok', 'error', 'timeout', 'cancelled', 'unknown'].map((status) => ({
    status,
    value: 1,
    more: [null],
  }))

  it('carry a value that looks like one of them unchanged to journal, direct call, model and transcript', async () => {
    await using harness = open()
    const id = await harness.create({ tools: [toolNamed('t')], script: [use('t'), { text: 'ok' }] })
    harness.binding.script = async ({ services }) => {
      for (const value of reserved) await services.emitResult(JSON.stringify({ status: 'ok', value }))
      await services.finish(JSON.stringify({ status: 'ok', value: reserved }))
      return { type: 'result', text: '' }
    }
    const expected = [...reserved, reserved]
    const answer = await harness.call(id, 't', {})
    expect(answer.results.map((result) => result.output)).toEqual(expected)
    expect(answer.outcome).toEqual({ status: 'ok', value: null })
    await harness.send(id, 'go')
    const { messages } = await harness.service.transcript(localTenant, id)
    expect(messages[2]?.content).toMatchObject([{ type: 'tool_result', content: expected, is_error: false }])
    const results = (await harness.records(id)).flatMap((record) => dataOf(record, 'tool_result_emitted')?.result ?? [])
    expect(results.map((result) => result.output)).toEqual([...expected, ...expected])
  })

  it('keep code, message, retryable and details of an error, and show the model its text where there is one', async () => {
    await using harness = open()
    const error = { code: 'rate_limited', message: 'slow down', retryable: true, details: { after: 3 } }
    const id = await harness.create({
      tools: [toolNamed('t')],
      script: [use('t'), { text: 'ok' }, use('t'), { text: 'ok' }],
    })
    const finishWith = (outcome: unknown): void => {
      harness.binding.script = async ({ services }) => {
        await services.finish(JSON.stringify(outcome))
        return { type: 'result', text: '' }
      }
    }
    finishWith({ status: 'error', error })
    expect((await harness.call(id, 't', {})).outcome).toEqual({ status: 'error', error })
    await harness.send(id, 'one')
    finishWith({ status: 'error', error, content: 'try later' })
    await harness.send(id, 'two')
    const { messages } = await harness.service.transcript(localTenant, id)
    const results = messages.flatMap(({ content }) => content.filter((block) => block.type === 'tool_result'))
    expect(results).toMatchObject([
      { content: error, is_error: true },
      { content: 'try later', is_error: true },
    ])
    const ends = (await harness.records(id)).flatMap((record) => dataOf(record, 'tool_call_ended')?.outcome ?? [])
    expect(ends).toEqual([
      { status: 'error', error },
      { status: 'error', error },
      { status: 'error', error, content: 'try later' },
    ])
  })
})

describe('an end that is being written', () => {
  it('E4 gives way to a cancellation or deadline that came meanwhile, when the storage refuses it', async () => {
    let isBroken = false
    await using harness = open({ fault: () => (isBroken ? 'disk full' : undefined) })
    const id = await harness.create({ tools: [toolNamed('t')] })
    const answer = harness.call(id, 't', {})
    const { services } = await harness.binding.next()
    const call = harness.sessions.all[0]?.openCalls.get(5)
    isBroken = true
    const finished = services.finish(undefined)
    const interrupted = call?.interrupt('timeout')
    await expect(finished).rejects.toMatchObject({ code: 'storage_unavailable' })
    isBroken = false
    await interrupted
    expect((await answer).outcome).toEqual({ status: 'timeout' })
    expectSoundJournal(await harness.records(id))
  })

  it('E1 stays the first of two, and a call returns once', async () => {
    await using harness = open()
    const id = await harness.create({ tools: [toolNamed('t', { output_schema: { pattern: '^a' } })] })
    const answer = harness.call(id, 't', {})
    const { services } = await harness.binding.next()
    const ok = '{"status":"ok","value":"a"}'
    const returns = await Promise.allSettled([services.returned(ok), services.returned(ok)])
    expect(returns.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
    const ends = await Promise.allSettled([services.finish(undefined), services.finish(ok), services.finish(undefined)])
    expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
    await answer
    const kinds = (await harness.kinds(id)).slice(4)
    expect(kinds).toEqual(['tool_call_started', 'tool_result_emitted', 'tool_call_returned', 'tool_call_ended'])
  })
})
