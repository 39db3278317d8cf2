import { describe, expect, it } from 'vitest'
import { FIXED_SENTENCES } from '../../../src/contract/outcome.ts'
import type { Json } from '../../../src/kernel/json.ts'
import { localTenant } from '../../../src/kernel/ids.ts'
import type { McpCall } from '../../../src/mcp/offered-tools.ts'
import { SessionTools } from '../../../src/mcp/session-tools.ts'
import type { HandCall } from '../../support/hand-binding.ts'
import { sharedHarnesses, toolNamed, type Harness } from '../../support/session-harness.ts'

const open = sharedHarnesses()
const call = (more: Partial<McpCall> = {}): McpCall => ({
  name: 't',
  arguments: {},
  signal: new AbortController().signal,
  ...more,
})

async function sessionTools(
  harness: Harness,
  options: Parameters<typeof toolNamed>[1] = {},
): Promise<{ tools: SessionTools; id: Awaited<ReturnType<Harness['create']>> }> {
  const id = await harness.create({ tools: [toolNamed('t', options)] })
  return { tools: new SessionTools(harness.calls, localTenant, id), id }
}

/** What a client gets for a call that ends as `conduct` says. */
async function resultOf(conduct: (hand: HandCall) => Promise<unknown> | void, outputSchema?: Json): Promise<any> {
  await using harness = open()
  const { tools } = await sessionTools(harness, outputSchema === undefined ? {} : { output_schema: outputSchema })
  const calling = tools.call(call())
  await conduct(await harness.binding.next())
  return (await calling).result
}

const outcome = (value: Json) => (hand: HandCall) => hand.services.finish(JSON.stringify(value))
const text = (...texts: string[]): object[] => texts.map((one) => ({ type: 'text', text: one }))

describe('a call that ends well', () => {
  it('gives its value as structured content, and as text', async () => {
    expect(await resultOf(outcome({ status: 'ok', value: { n: 1 } }))).toMatchObject({
      content: text('{"n":1}'),
      structuredContent: { n: 1 },
      _meta: { 'brain/call': { sequence: 5, finished: true } },
    })
  })

  it('gives the text that the tool wrote for models, instead', async () => {
    const result = await resultOf(outcome({ status: 'ok', value: [1, 2], content: 'Two numbers.' }))
    expect(result).toMatchObject({ content: text('Two numbers.'), structuredContent: [1, 2] })
    expect(result.isError).toBeUndefined()
  })

  it('gives every result as a text, and the last as structured content', async () => {
    const result = await resultOf(async ({ services }) => {
      await services.emitResult('{"status":"ok","value":"first"}')
      await services.finish('{"status":"ok","value":{"n":2}}')
    })
    expect(result).toMatchObject({ content: text('first', '{"n":2}'), structuredContent: { n: 2 } })
  })

  it('says that there is no result, which is an error only where one was promised', async () => {
    const finish = ({ services }: HandCall) => services.finish(undefined)
    expect(await resultOf(finish)).toMatchObject({ content: text('The tool has finished and gave no result.') })
    expect(await resultOf(finish, { type: 'object' })).toMatchObject({ isError: true })
  })

  it('answers with what is returned while it goes on, and waits for what returns nothing', async () => {
    await using harness = open()
    const { tools } = await sessionTools(harness)
    const returning = tools.call(call())
    const first = await harness.binding.next()
    await first.services.returned('{"status":"ok","value":1}')
    expect((await returning).result).toMatchObject({
      structuredContent: 1,
      _meta: { 'brain/call': { finished: false } },
    })
    const waiting = tools.call(call())
    const second = await harness.binding.next()
    await second.services.returned(undefined)
    await second.services.finish('{"status":"ok","value":2}')
    expect((await waiting).result).toMatchObject({ structuredContent: 2, _meta: { 'brain/call': { finished: true } } })
    await first.services.finish(undefined)
  })
})

describe('a call that does not end well', () => {
  it('is an error that names its code and reason, for programs with its details', async () => {
    const error = { code: 'no_such_city', message: 'There is no Atlantis', details: { near: 'Athens' } }
    expect(await resultOf(outcome({ status: 'error', error }))).toEqual({
      content: text('no_such_city: There is no Atlantis'),
      isError: true,
      _meta: { 'brain/call': { sequence: 5, finished: true, error } },
    })
  })

  it('keeps what the tool wrote for models', async () => {
    const error = { code: 'c', message: 'm' }
    const result = await resultOf(outcome({ status: 'error', error, content: 'Try Athens.' }))
    expect(result).toMatchObject({ isError: true, content: text('Try Athens.', 'c: m') })
  })

  it.each(['timeout', 'cancelled'] as const)('says of %s that the work may have been done', async (status) => {
    const result = await resultOf(({ end }) => end({ type: 'stopped', reason: status }))
    expect(result).toMatchObject({ isError: true, content: text(`${status}: ${FIXED_SENTENCES[status]}`) })
    expect(result._meta['brain/call']).toMatchObject({ error: { code: status }, unknown_outcome: true })
  })

  it('says so of what is unknown, with the cause', async () => {
    const result = await resultOf(({ end }) => end({ type: 'unknown', message: 'The box was killed.' }))
    expect(result).toMatchObject({ content: text(`unknown: ${FIXED_SENTENCES.unknown} The box was killed.`) })
    expect(result).toMatchObject({ isError: true, _meta: { 'brain/call': { unknown_outcome: true } } })
  })

  it('says so of an error after which the work may have been done', async () => {
    const error = { code: 'invalid_output', message: 'm', details: { unknown_outcome: true } }
    const result = await resultOf(outcome({ status: 'error', error }))
    expect(result).toMatchObject({ isError: true, content: text(`invalid_output: m. ${FIXED_SENTENCES.unknown}`) })
  })

  it('is an error for input that the schema refuses, and is not sent', async () => {
    await using harness = open()
    const { tools } = await sessionTools(harness, { input_schema: { type: 'object', required: ['city'] } })
    const { result } = await tools.call(call())
    expect(result).toMatchObject({ isError: true, _meta: { 'brain/call': { error: { code: 'invalid_input' } } } })
    expect(harness.binding.calls).toEqual([])
  })
})

describe('while a call goes on', () => {
  it('its events and its progress are told, and those of no other call', async () => {
    await using harness = open()
    const { tools } = await sessionTools(harness)
    const lines: string[] = []
    const other = tools.call(call())
    const otherHand = await harness.binding.next()
    const watched = tools.call(call({ onProgress: (line) => lines.push(line) }))
    const { services } = await harness.binding.next()
    services.progress({ done: 1 })
    otherHand.services.progress('of another')
    await otherHand.services.emit('found', '"of another"')
    await services.emit('found', '{"at":3}')
    services.progress('x'.repeat(10_000))
    await services.finish('{"status":"ok","value":1}')
    await watched
    await otherHand.services.finish(undefined)
    await other
    expect(lines).toEqual(['{"done":1}', 'found: {"at":3}', 'x'.repeat(4096)])
  })

  it('a cancellation ends it and no other, and leaves nobody who follows the session', async () => {
    await using harness = open()
    const { tools, id } = await sessionTools(harness)
    const followers = (): Promise<number> =>
      harness.sessions.use(localTenant, id, ({ log }) => Promise.resolve(log.followers))
    const before = await followers()
    const stop = new AbortController()
    const cancelled = tools.call(call({ signal: stop.signal }))
    const hand = await harness.binding.next()
    const other = tools.call(call())
    const otherHand = await harness.binding.next()
    expect(await followers()).toBe(before + 2)
    stop.abort()
    expect(await hand.cancelled).toBe('cancelled')
    expect((await cancelled).result).toMatchObject({ isError: true })
    await otherHand.services.finish('{"status":"ok","value":1}')
    expect((await other).result).toMatchObject({ structuredContent: 1 })
    expect(await followers()).toBe(before)
  })

  it('one that was cancelled before it began is not left open', async () => {
    await using harness = open()
    const { tools } = await sessionTools(harness)
    const { result } = await tools.call(call({ signal: AbortSignal.abort() }))
    expect(result).toMatchObject({ isError: true, _meta: { 'brain/call': { error: { code: 'cancelled' } } } })
  })
})

describe('what is refused', () => {
  it('names a tool that the session has not, and follows nothing', async () => {
    await using harness = open()
    const { tools } = await sessionTools(harness)
    await expect(tools.call(call({ name: 'u' }))).rejects.toMatchObject({ code: 'not_found' })
    await expect(tools.call(call({ environment: 'elsewhere' }))).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it('is everything of a session that has ended', async () => {
    await using harness = open()
    const { tools, id } = await sessionTools(harness)
    await harness.end(id)
    const refusal = { code: 'invalid_request', message: expect.stringMatching(/it is ended$/) }
    await expect(tools.list()).rejects.toMatchObject(refusal)
    await expect(tools.call(call())).rejects.toMatchObject(refusal)
  })
})
