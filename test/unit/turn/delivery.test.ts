import { describe, expect, it, vi } from 'vitest'
import { defaultLimits } from '../../../src/contract/limits.ts'
import type { SessionId } from '../../../src/kernel/ids.ts'
import type { Agentloop, LoopHost, TurnInput } from '../../../src/turn/agentloop.ts'
import { openMemoryJournal } from '../../../src/journal/memory/memory-journal.ts'
import { dataOf, type JournalRecord } from '../../../src/journal/record.ts'
import { WAKE_WINDOW_MS } from '../../../src/turn/wakes.ts'
import { expectSoundJournal } from '../../support/journal-checks.ts'
import { type Harness, sharedHarnesses, toolNamed } from '../../support/session-harness.ts'

const open = sharedHarnesses()

type Act = (input: TurnInput, host: LoopHost) => Promise<unknown>

/** A loop that is told what to do by the test, and remembers what it was given. */
function actor(act: Act = async () => undefined): Agentloop & { readonly inputs: TurnInput[]; act: Act } {
  const inputs: TurnInput[] = []
  const loop = {
    inputs,
    act,
    async run(input: TurnInput, host: LoopHost) {
      inputs.push(input)
      await loop.act(input, host)
      return {}
    },
  }
  return loop
}

const invoke = (name: string, id = `${name}1`) => ({ call_id: id, name, environment: 'box', input: {} })

/** Dispatches one background tool in a first turn, whose records are read to their end. */
const openBackground: Act = async (input, host) => {
  if (input.input === undefined) return
  await host.dispatch([invoke('t')])
  await host.events(input.events.at(-1)?.sequence ?? 0)
}

async function background(harness: Harness) {
  const id = await harness.create({ tools: [toolNamed('t')] })
  const sent = harness.send(id, 'go')
  const hand = await harness.binding.next()
  await hand.services.returned(undefined)
  await sent
  return { id, services: hand.services, hand }
}

const turnsOf = async (harness: Harness, id: SessionId): Promise<readonly JournalRecord[]> =>
  (await harness.records(id)).filter((record) => record.event_type === 'turn_started')

/** Waits until a session rests after so many turns. */
async function afterTurns(harness: Harness, id: SessionId, count: number): Promise<readonly JournalRecord[]> {
  await vi.waitFor(async () => {
    const kinds = await harness.kinds(id)
    expect(kinds.filter((kind) => kind === 'turn_ended' || kind === 'turn_failed')).toHaveLength(count)
  }, 5000)
  return harness.records(id)
}

const through = (records: readonly JournalRecord[]): readonly number[] =>
  records.flatMap((record) => dataOf(record, 'turn_ended')?.events_through ?? [])

describe('delivery', () => {
  it('starts one activation for all that a window gathers, without input, with the batch since the marker', async () => {
    const loop = actor(openBackground)
    await using harness = open({ loop })
    const { id, services } = await background(harness)
    const before = await harness.records(id)
    await Promise.all([
      services.emit('a', '1'),
      services.emit('b', '2'),
      services.emitResult('{"status":"ok","value":3}'),
    ])
    const records = await afterTurns(harness, id, 2)
    expect((await turnsOf(harness, id))[1]?.data).toEqual({ trigger: 'events' })
    const [, woken] = loop.inputs
    expect(woken).not.toHaveProperty('input')
    const marker = through(before)[0] ?? 0
    expect(woken?.kv['brain.last_activation']).toBe(marker)
    const started = records.findLast((record) => record.event_type === 'activation_started')
    expect(started?.data).toEqual({ since: marker })
    // The plain journal: kernel records too, up to this very turn_started.
    expect(woken?.events).toEqual(records.slice(marker, (started?.sequence ?? 0) - 1))
    expect(woken?.events.at(-1)?.event_type).toBe('turn_started')
    const first = records.find((record) => record.event_type === 'a')
    const start = (await turnsOf(harness, id))[1]
    expect((start?.recorded_at_ms ?? 0) - (first?.recorded_at_ms ?? 0)).toBeGreaterThanOrEqual(WAKE_WINDOW_MS - 1)
    await services.finish(undefined)
    await afterTurns(harness, id, 3)
  })

  it('hands over at most 1,000 records at a time, and goes on until all are delivered', async () => {
    const loop = actor(openBackground)
    await using harness = open({ loop })
    const { id, services } = await background(harness)
    await Promise.all(Array.from({ length: 2300 }, (_, index) => services.emit('n', String(index))))
    const ended = await afterTurns(harness, id, 4)
    const batches = loop.inputs.slice(1).map((input) => input.events)
    expect(batches.map((batch) => batch.length).slice(0, 2)).toEqual([1000, 1000])
    expect(batches.every((batch) => batch.length <= 1000)).toBe(true)
    const seen = batches.flat().filter((record) => record.event_type === 'n')
    expect(seen.map((record) => record.data)).toEqual(Array.from({ length: 2300 }, (_, index) => index))
    expect(through(ended).slice(1)).toEqual(batches.map((batch) => batch.at(-1)?.sequence))
  })

  it('activates a loop once more with the records of what it dispatched, unless it read on to the end', async () => {
    for (const readsOn of [false, true]) {
      const loop = actor(async (input, host) => {
        if (input.input === undefined) return
        await host.dispatch([invoke('t')])
        if (readsOn) await host.events(input.events.at(-1)?.sequence ?? 0)
      })
      await using harness = open({ loop })
      harness.binding.script = async ({ services }) => {
        await services.finish('{"status":"ok","value":1}')
        return { type: 'result', text: '' }
      }
      const id = await harness.create({ tools: [toolNamed('t')] })
      await harness.send(id, 'go')
      await new Promise((resolve) => setTimeout(resolve, 5 * WAKE_WINDOW_MS))
      expect(await turnsOf(harness, id), `reads on: ${readsOn}`).toHaveLength(readsOn ? 1 : 2)
      if (!readsOn) expect(loop.inputs[1]?.events.map((record) => record.event_type)).toContain('tool_result_emitted')
    }
  })

  it('completes nothing by reading ahead of what was delivered', async () => {
    const loop = actor(async (input, host) => {
      const last = input.events.at(-1)?.sequence ?? 0
      await host.emit('one', 1)
      await host.emit('two', 2)
      await host.events(last + 2)
    })
    await using harness = open({ loop })
    const id = await harness.create()
    await harness.send(id, 'go')
    const records = await harness.records(id)
    const delivered = loop.inputs[0]?.events.at(-1)?.sequence
    expect(records.at(-1)?.data).toEqual({ result: null, events_through: delivered })
    await harness.send(id, 'again')
    expect(loop.inputs[1]?.events[0]?.sequence).toBe((delivered ?? 0) + 1)
  })

  it('leaves everything pending when the activation fails, interrupts every open tool, and does not try again', async () => {
    const loop = actor(openBackground)
    await using harness = open({ loop })
    const { id, services, hand } = await background(harness)
    const marker = through(await harness.records(id))[0]
    loop.act = async () => {
      throw new Error('the loop broke')
    }
    await services.emit('news', '1')
    const records = await afterTurns(harness, id, 2)
    expect(await hand.cancelled).toBe('cancelled')
    expect(records.slice(-2).map((record) => record.event_type)).toEqual(['activation_failed', 'turn_failed'])
    expect(records.at(-1)?.data).toMatchObject({ code: 'agentloop_failed', message: 'the loop broke' })
    await new Promise((resolve) => setTimeout(resolve, 4 * WAKE_WINDOW_MS))
    expect(await turnsOf(harness, id)).toHaveLength(2)
    loop.act = async () => undefined
    await harness.send(id, 'again')
    const input = loop.inputs.at(-1)
    expect(input?.events[0]?.sequence).toBe((marker ?? 0) + 1)
    expect(input?.events.map((record) => record.event_type)).toEqual(
      expect.arrayContaining(['news', 'tool_cancel_started', 'tool_call_ended', 'turn_failed']),
    )
    expectSoundJournal(await harness.records(id))
  })

  it('is not woken by what an interrupted call left, which comes with the next turn', async () => {
    const loop = actor(openBackground)
    await using harness = open({ loop })
    const { id, services } = await background(harness)
    // In one go: between two appends the window may pass.
    await Promise.all([services.emit('news', '1'), harness.cancel(id)])
    await new Promise((resolve) => setTimeout(resolve, 5 * WAKE_WINDOW_MS))
    expect(await turnsOf(harness, id)).toHaveLength(1)
    loop.act = async () => undefined
    await harness.send(id, 'again')
    expect(loop.inputs.at(-1)?.events.map((record) => record.event_type)).toEqual(
      expect.arrayContaining(['news', 'session_interrupted', 'tool_call_ended']),
    )
  })

  it('fails a turn that was cancelled while its loop returned, and not one that had ended before', async () => {
    const gate = { open: (): void => undefined }
    const loop = actor(() => new Promise((resolve) => (gate.open = () => resolve(undefined))))
    await using harness = open({ loop })
    const id = await harness.create()
    for (let round = 0; round < 20; round++) {
      const sent = harness.send(id, 'go')
      await vi.waitFor(() => expect(loop.inputs).toHaveLength(round + 1))
      const cancelled = harness.cancel(id)
      for (let step = 0; step < round; step++) await Promise.resolve()
      gate.open()
      await Promise.all([sent, cancelled])
    }
    for (const record of await harness.records(id)) {
      if (record.event_type !== 'session_interrupted') continue
      const next = (await harness.records(id))
        .slice(record.sequence)
        .find(({ event_type: kind }) => kind.startsWith('turn_'))
      if (next !== undefined) expect(next.event_type).not.toBe('turn_ended')
    }
    expectSoundJournal(await harness.records(id))
  })

  it('is not woken by a background tool that ran into its deadline', async () => {
    const loop = actor(openBackground)
    await using harness = open({ loop, limits: { toolSecs: 1 } })
    const { id, hand } = await background(harness)
    expect(await hand.cancelled).toBe('timeout')
    await new Promise((resolve) => setTimeout(resolve, 5 * WAKE_WINDOW_MS))
    expect(await turnsOf(harness, id)).toHaveLength(1)
    const ended = (await harness.records(id)).flatMap((record) => dataOf(record, 'tool_call_ended') ?? [])
    expect(ended[0]?.outcome).toEqual({ status: 'timeout' })
  })

  it('asks the model nothing when a wake brings only events', async () => {
    await using harness = open()
    const script = [{ tool_calls: [{ name: 't', input: {} }] }, { text: 'waiting' }, { text: 'never' }]
    const id = await harness.create({ tools: [toolNamed('t')], script })
    const sent = harness.send(id, 'go')
    const { services } = await harness.binding.next()
    await services.returned(undefined)
    await sent
    await services.emit('progress', '1')
    const records = await afterTurns(harness, id, 2)
    expect(records.filter((record) => record.event_type === 'model_call_started')).toHaveLength(2)
    await harness.end(id)
  })

  it('tries again when the storage could not open the activation that was due', async () => {
    let isBroken = false
    const journal = openMemoryJournal({ limits: defaultLimits, fault: () => (isBroken ? 'disk full' : undefined) })
    const loop = actor(openBackground)
    await using harness = open({ loop, journal })
    const { id, services } = await background(harness)
    await services.finish('{"status":"ok","value":1}')
    isBroken = true
    await new Promise((resolve) => setTimeout(resolve, 4 * WAKE_WINDOW_MS))
    isBroken = false
    expect(await turnsOf(harness, id)).toHaveLength(1)
    await afterTurns(harness, id, 2)
    expect(loop.inputs[1]?.events.map((record) => record.event_type)).toContain('tool_result_emitted')
  })
})
