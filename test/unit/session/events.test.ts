import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { localTenant, type SessionId } from '../../../src/kernel/ids.ts'
import type { JournalRecord } from '../../../src/journal/record.ts'
import { FIXED_SENTENCES } from '../../../src/contract/outcome.ts'
import { activityIdOf, PROGRESS_FRAME } from '../../../src/dispatch/call-activity.ts'
import { type Harness, sharedHarnesses, toolNamed } from '../../support/session-harness.ts'

const open = sharedHarnesses()

const never = new AbortController().signal
const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** An open call whose events are the test's to emit. */
async function emitter(
  harness: Harness,
): Promise<{ id: SessionId; emit: (data: unknown) => Promise<number>; end: () => Promise<unknown> }> {
  const id = await harness.create({ tools: [toolNamed('t')] })
  const answer = harness.call(id, 't', {})
  const { services } = await harness.binding.next()
  return {
    id,
    emit: (data) => services.emit('n', JSON.stringify(data)),
    end: async () => {
      await services.finish(undefined)
      await answer
      return harness.end(id)
    },
  }
}

describe('a page of events', () => {
  it('holds 1,000 records or 8 MiB, one at least, and its cursor stands still at the end', async () => {
    await using harness = open({ limits: { emittedBytes: 0 } })
    const { id, emit } = await emitter(harness)
    await Promise.all(Array.from({ length: 1200 }, (_, index) => emit(index)))
    const first = await harness.feed.page(localTenant, id, 0)
    expect([first.events.length, first.next_cursor]).toEqual([1000, 1000])
    const second = await harness.feed.page(localTenant, id, 1000)
    expect(second.events.map((record) => record.sequence)).toEqual(Array.from({ length: 205 }, (_, i) => 1001 + i))
    expect(await harness.feed.page(localTenant, id, 1205)).toEqual({ events: [], next_cursor: 1205 })
    expect(await harness.feed.page(localTenant, id, 9999)).toEqual({ events: [], next_cursor: 9999 })
    for (let count = 0; count < 3; count++) await emit('x'.repeat(3 * 1024 * 1024))
    await emit('y'.repeat(9 * 1024 * 1024))
    const heavy = await harness.feed.page(localTenant, id, 1205)
    expect(heavy.events.map((record) => record.sequence)).toEqual([1206, 1207])
    const alone = await harness.feed.page(localTenant, id, 1208)
    expect(alone).toMatchObject({ next_cursor: 1209, events: [{ sequence: 1209 }] })
  })
})

describe('a stream of events', () => {
  it('has every record once, in order, at any rate of writing and reading, over any number of streams', async () => {
    await using harness = open({ limits: { emittedBytes: 0, liveBacklog: 4 } })
    const pauses = fc.array(fc.nat(3), { minLength: 1, maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(pauses, pauses, fc.nat(8), async (writing, reading, after) => {
        const { id, emit, end } = await emitter(harness)
        const written = (async () => {
          for (const pause of writing) {
            await Promise.all(Array.from({ length: pause === 0 ? 9 : 1 }, () => emit(1)))
            for (let count = 0; count < pause; count++) await tick()
          }
          await end()
        })()
        const seen: JournalRecord[] = []
        let turn = 0
        // A stream that was cut goes on after the last record that came of it.
        for (let isOver = false; !isOver;) {
          const feed = await harness.feed.follow(localTenant, id, seen.at(-1)?.sequence ?? after, never)
          for await (const item of feed) {
            if (item.type !== 'record') continue
            seen.push(item.record)
            isOver = item.record.event_type === 'session_ended'
            const pause = reading[turn++ % reading.length] ?? 0
            for (let count = 0; count < pause; count++) await tick()
          }
        }
        await written
        expect(seen).toEqual((await harness.records(id)).slice(after))
      }),
      { numRuns: 25 },
    )
  })

  it('is not cut in its history, however much is written meanwhile', async () => {
    await using harness = open({ limits: { emittedBytes: 0, liveBacklog: 8 } })
    const { id, emit, end } = await emitter(harness)
    const feed = await harness.feed.follow(localTenant, id, 0, never)
    const seen: number[] = []
    for await (const item of feed) {
      if (item.type !== 'record') continue
      seen.push(item.record.sequence)
      if (item.record.sequence <= 3) await Promise.all(Array.from({ length: 50 }, () => emit(1)))
      if (item.record.sequence === 100) void end()
    }
    expect(feed.lagged.aborted).toBe(false)
    expect(seen).toEqual(seen.map((_, index) => index + 1))
    expect(seen.length).toBeGreaterThan(150)
  })

  it('is cut when its reader lags behind by more than the backlog, having given all before the gap', async () => {
    await using harness = open({ limits: { emittedBytes: 0, liveBacklog: 8 } })
    const { id, emit } = await emitter(harness)
    const feed = await harness.feed.follow(localTenant, id, 5, never)
    const seen: number[] = []
    const reading = (async () => {
      for await (const item of feed) {
        if (item.type === 'record') seen.push(item.record.sequence)
        if (seen.length === 1) for (let count = 0; count < 20; count++) await emit(count)
      }
    })()
    await tick()
    await emit(0)
    await reading
    expect(feed.lagged.aborted).toBe(true)
    expect(seen).toEqual(Array.from({ length: 9 }, (_, index) => 6 + index))
  })

  it('ends at once for a session that is over, and when its reader goes', async () => {
    await using harness = open()
    const { id, end } = await emitter(harness)
    const reader = new AbortController()
    const feed = await harness.feed.follow(localTenant, id, 5, reader.signal)
    reader.abort()
    for await (const item of feed) expect(item).toBeUndefined()
    await end()
    const last = (await harness.records(id)).length
    for await (const item of await harness.feed.follow(localTenant, id, last, never)) expect(item).toBeUndefined()
  })
})

describe('the activity of tools', () => {
  const finish = (text: string | undefined) => async (harness: Harness, id: SessionId) => {
    const answer = harness.call(id, 't', { a: 1 })
    const { services } = await harness.binding.next()
    await services.finish(text)
    await answer
  }
  const cases: readonly (readonly [string, (harness: Harness, id: SessionId) => Promise<void>, object])[] = [
    ['a value', finish('{"status":"ok","value":{"n":1}}'), { structured_content: { n: 1 }, is_error: false }],
    [
      'a value with its text',
      finish('{"status":"ok","value":{"n":1},"content":"one"}'),
      { content: [{ type: 'text', text: 'one' }], structured_content: { n: 1 }, is_error: false },
    ],
    ['nothing', finish(undefined), { structured_content: null, is_error: false }],
    [
      'a failure',
      finish('{"status":"error","error":{"code":"sad","message":"no"},"content":"could not"}'),
      {
        content: [{ type: 'text', text: 'could not' }],
        structured_content: { code: 'sad', message: 'no' },
        is_error: true,
      },
    ],
    [
      'a failure that may have done its work',
      finish('{"status":"error","error":{"code":"sad","message":"no","details":{"unknown_outcome":true}}}'),
      {
        structured_content: {
          code: 'sad',
          message: `no. ${FIXED_SENTENCES.unknown}`,
          details: { unknown_outcome: true },
        },
        is_error: true,
        unknown_outcome: true,
      },
    ],
    [
      'a cancellation',
      async (harness, id) => {
        const answer = harness.call(id, 't', { a: 1 })
        const { services } = await harness.binding.next()
        await services.emitResult('{"status":"ok","value":1}')
        await harness.cancel(id)
        await answer
      },
      { structured_content: { code: 'cancelled', message: expect.any(String) }, is_error: true, unknown_outcome: true },
    ],
  ]

  it('is one call and one result of each, by names that no other call has', async () => {
    await using harness = open()
    const id = await harness.create({ tools: [toolNamed('t')] })
    for (const [what, act, expected] of cases) {
      const after = (await harness.records(id)).length
      await act(harness, id)
      const { events } = await harness.activity.page(localTenant, id, after)
      const records = (await harness.records(id)).slice(after)
      const sequence = records.find((record) => record.event_type === 'tool_call_started')?.sequence ?? 0
      const end = records.find((record) => record.event_type === 'tool_call_ended')
      const call_id = activityIdOf(id, sequence)
      expect(events, what).toEqual([
        { sequence, event_type: 'tool.call', data: { call_id, name: 't', arguments: { a: 1 }, sequence } },
        { sequence: end?.sequence, event_type: 'tool.result', data: { call_id, ...expected } },
      ])
    }
    expect(activityIdOf(id, 7)).toBe(`call_${id.slice(4)}_7`)
  })

  it('shows the last result also to who comes after it, and empty pages only at the end', async () => {
    await using harness = open({ limits: { emittedBytes: 0 } })
    const id = await harness.create({ tools: [toolNamed('t')] })
    const answer = harness.call(id, 't', {})
    const { services } = await harness.binding.next()
    await services.emitResult('{"status":"ok","value":"first"}')
    const after = await services.emitResult('{"status":"ok","value":"last"}')
    for (let count = 0; count < 1100; count++) void services.emit('n', '1')
    await services.finish(undefined)
    await answer
    const page = await harness.activity.page(localTenant, id, after)
    expect(page.events).toMatchObject([{ event_type: 'tool.result', data: { structured_content: 'last' } }])
    expect((await harness.activity.page(localTenant, id, page.next_cursor)).events).toEqual([])
  })

  it('streams history, then what comes, with progress that is not kept', async () => {
    await using harness = open()
    const id = await harness.create({ tools: [toolNamed('t')] })
    await finish('{"status":"ok","value":1}')(harness, id)
    const { events } = await harness.activity.follow(localTenant, id, 0, never)
    const seen: unknown[] = []
    const reading = (async () => {
      for await (const event of events) seen.push(event.event_type === PROGRESS_FRAME ? event : event.event_type)
    })()
    await expect.poll(() => seen.length).toBe(2)
    await harness.sessions.use(localTenant, id, async ({ log }) => {
      log.publish({ type: PROGRESS_FRAME, data: { call_id: 'c', data: 1 } })
      log.publish({ type: 'assistant_delta', data: {} })
    })
    await expect.poll(() => seen.length).toBe(3)
    await harness.end(id)
    await reading
    expect(seen).toEqual(['tool.call', 'tool.result', { event_type: PROGRESS_FRAME, data: { call_id: 'c', data: 1 } }])
  })
})
