import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Json } from '../../../src/kernel/json.ts'
import type { JournalRecord, Origin } from '../../../src/journal/record.ts'
import { advance, elapse, forget, quietAt, silence, WAKE_WINDOW_MS, type Wakes } from '../../../src/turn/wakes.ts'

const record = (sequence: number, event_type: string, data: Json = {}, origin?: Origin): JournalRecord => ({
  sequence,
  recorded_at_ms: 0,
  event_type,
  data,
  ...(origin === undefined ? {} : { origin }),
})
const ofTool = (sequence: number, call: number, kind = 'tool_result_emitted'): JournalRecord =>
  record(sequence, kind, { sequence: call }, { kind: 'tool', sequence: call })

/** A machine to which records are told at given times. */
const told = (...steps: readonly (readonly [number, JournalRecord])[]): Wakes =>
  steps.reduce((wakes, [at, one]) => advance(wakes, one, at), quietAt(0))

describe('wakes', () => {
  it.each(['tool_result_emitted', 'tool_call_ended', 'output_emitted', 'anything'])('W1 note %s of a tool', (kind) => {
    expect(told([100, ofTool(7, 3, kind)])).toMatchObject({ phase: 'gathering', at: 105 })
  })

  it.each<[string, JournalRecord]>([
    ['a return', ofTool(7, 3, 'tool_call_returned')],
    ['a model call of a tool', ofTool(7, 3, 'model_call_ended')],
    ['an event of the loop', record(7, 'anything', 1, { kind: 'agentloop', sequence: 3 })],
    ['output of the loop', record(7, 'output_emitted', 1, { kind: 'agentloop', sequence: 3 })],
    ['a record of the kernel', record(7, 'kv_set', { key: 'k', value: 1 })],
    ['the end of a cancellation', record(7, 'tool_cancel_ended', { sequence: 3 })],
  ])('W1 note nothing of %s', (_what, one) => {
    expect(told([0, one]).phase).toBe('quiet')
  })

  it('W1 note nothing of a direct call, nor of one that was interrupted, and take back what was noted of it', () => {
    const direct = record(3, 'tool_call_started', {}, { kind: 'application' })
    expect(told([0, direct], [0, ofTool(4, 3)], [0, ofTool(5, 3, 'tool_call_ended')]).phase).toBe('quiet')
    const cancelled = record(6, 'tool_cancel_started', { target_sequence: 3, tool: 't', environment: 'e' })
    const after = told([0, ofTool(4, 3)], [1, ofTool(5, 2)], [2, cancelled], [2, ofTool(7, 3, 'tool_call_ended')])
    expect(after).toMatchObject({ phase: 'gathering', at: 5, noted: new Map([[2, 5]]), silent: new Set() })
    expect(silence(after, 2).phase).toBe('quiet')
  })

  it('W2 fix the window at the first record, which nothing extends', () => {
    const wakes = told([100, ofTool(7, 3)], [103, ofTool(9, 3)], [104.9, ofTool(12, 4)])
    expect(elapse(wakes, 104.9).phase).toBe('gathering')
    expect(elapse(wakes, 105).phase).toBe('due')
  })

  it('W3 stay due until a successful activation was given the newest record', () => {
    const due = elapse(told([0, ofTool(7, 3)], [0, ofTool(1500, 4)]), 5)
    const first = advance(due, record(1600, 'turn_ended', { result: null, events_through: 1000 }), 6)
    expect(first).toMatchObject({ phase: 'due', noted: new Map([[4, 1500]]) })
    expect(advance(first, record(1700, 'turn_ended', { result: null, events_through: 1700 }), 7).phase).toBe('quiet')
  })

  it('W1 note what the controller of an environment says', () => {
    const origin: Origin = { kind: 'environment', environment: { name: 'e', sequence: 1 } }
    for (const kind of ['environment_observation', 'anything'])
      expect(told([100, record(7, kind, 1, origin)])).toMatchObject({ phase: 'gathering', at: 105 })
    expect(told([100, record(7, 'environment_setup_ended', { sequence: 6, result: {} })]).phase).toBe('quiet')
  })

  it.each([
    ['session_interrupted', {}, true],
    ['turn_failed', { code: 'cancelled' }, true],
    ['turn_failed', { code: 'interrupted' }, true],
    ['turn_failed', { code: 'agentloop_failed' }, false],
  ])('W5 after %s %j hear controllers again when somebody speaks', (kind, data, isMuted) => {
    const said = record(8, 'anything', 1, { kind: 'environment', environment: { name: 'e', sequence: 1 } })
    const stopped = told([0, record(7, kind, data)])
    expect(advance(stopped, said, 1).phase).toBe(isMuted ? 'quiet' : 'gathering')
    const woken = advance(stopped, record(8, 'turn_started', { trigger: 'events' }), 1)
    expect(advance(woken, said, 1).phase).toBe(isMuted ? 'quiet' : 'gathering')
    const spoken = advance(stopped, record(8, 'turn_started', { input: { message: 'm' } }), 1)
    expect(advance(spoken, said, 1).phase).toBe('gathering')
    expect(advance(stopped, ofTool(9, 3), 1).phase).toBe('gathering')
  })

  it.each(['session_interrupted', 'turn_failed'])('W4 forget what was noted at %s', (kind) => {
    const due = elapse(told([0, ofTool(7, 3)]), 5)
    expect(advance(due, record(8, kind), 6).phase).toBe('quiet')
    expect(advance(told([0, ofTool(7, 3)]), record(8, kind), 1).phase).toBe('quiet')
  })

  it.each(['session_end_started', 'session_ended', 'session_creation_failed'])('W5 hear nothing after %s', (kind) => {
    const origin: Origin = { kind: 'environment', environment: { name: 'e', sequence: 1 } }
    const said = (sequence: number): JournalRecord => record(sequence, 'noticed', 1, origin)
    expect(told([0, said(7)]).phase).toBe('gathering')
    expect(told([0, said(7)], [1, record(8, kind)], [2, said(9)]).phase).toBe('quiet')
  })

  it('open a new window after one that was given up', () => {
    const wakes = told([0, ofTool(7, 3)], [1, record(8, 'session_interrupted')], [3, ofTool(9, 4)])
    expect(wakes.at).toBe(3 + WAKE_WINDOW_MS)
    expect(elapse(wakes, 5).phase).toBe('gathering')
  })
})

type Step =
  | { readonly do: 'open'; readonly direct: boolean }
  | { readonly do: 'emit' | 'finish' | 'cancel'; readonly call: number }
  | { readonly do: 'interrupt' | 'stop' | 'succeed' | 'fail' }
  | { readonly do: 'wait'; readonly ms: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('open' as const), direct: fc.boolean() }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom('emit' as const, 'finish' as const, 'cancel' as const),
      call: fc.nat(5),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('interrupt' as const, 'stop' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('succeed' as const, 'fail' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 7 }) }) },
)

/** Small, so that backlogs take several activations. */
const BATCH = 6

/**
 * A session as simple as can be: it keeps every record, and finds out what wakes by looking at all of them again. It
 * shares no code and no idea with the machine but the contract.
 */
class Naive {
  readonly records: { readonly record: JournalRecord; readonly at: number }[] = []
  readonly open = new Map<number, { readonly direct: boolean }>()
  readonly interrupted = new Set<number>()
  readonly direct = new Set<number>()
  marker = 0
  now = 0
  isRunning = false
  delivered = 0
  /** Records before this one were forgotten. */
  #forgotten = 0
  #windowEnd: number | undefined

  get next(): number {
    return this.records.length + 1
  }

  commit(one: JournalRecord): void {
    this.records.push({ record: one, at: this.now })
    if (this.pending.length === 0) this.#windowEnd = undefined
    else this.#windowEnd ??= this.now + 5
  }

  forget(): void {
    this.#forgotten = this.records.length
  }

  get pending(): readonly JournalRecord[] {
    return this.records.flatMap(({ record: one }) => {
      const call = one.origin?.kind === 'tool' ? one.origin.sequence : undefined
      const waking = ['news', 'tool_call_ended'].includes(one.event_type) && call !== undefined
      const stays = one.sequence > this.marker && one.sequence > this.#forgotten
      return waking && stays && !this.interrupted.has(call) && !this.direct.has(call) ? [one] : []
    })
  }

  get isDue(): boolean {
    return this.pending.length > 0 && this.#windowEnd !== undefined && this.now >= this.#windowEnd
  }
}

/** Plays steps on the machine and on the model at once. */
class Play {
  readonly model = new Naive()
  wakes = quietAt(0)

  take(kind: string, data: Json = {}, origin?: Origin): number {
    const { model } = this
    const one = record(model.next, kind, data, origin)
    if (kind === 'tool_cancel_started') model.interrupted.add((data as { target_sequence: number }).target_sequence)
    if (kind === 'turn_ended') model.marker = (data as { events_through: number }).events_through
    if (origin?.kind === 'application') model.direct.add(one.sequence)
    if (kind === 'session_interrupted' || kind === 'turn_failed') model.forget()
    model.commit(one)
    this.wakes = advance(this.wakes, one, model.now)
    return one.sequence
  }

  cancel(call: number): void {
    this.take('tool_cancel_started', { target_sequence: call, tool: 't', environment: 'e' })
    this.finish(call)
  }

  finish(call: number): void {
    this.model.open.delete(call)
    this.take('tool_call_ended', { sequence: call }, { kind: 'tool', sequence: call })
  }

  /** Starts the activation that is due, as the runner does. */
  start(): void {
    const { model } = this
    this.wakes = elapse(this.wakes, model.now)
    expect(this.wakes.phase === 'due').toBe(model.isDue)
    if (model.isRunning || !model.isDue) return
    this.take('turn_started', { trigger: 'events' })
    model.isRunning = true
    model.delivered = Math.min(model.marker + BATCH, model.records.length)
  }

  end(isGood: boolean): void {
    const { model } = this
    if (!model.isRunning) return
    model.isRunning = false
    if (isGood) this.take('turn_ended', { result: null, events_through: model.delivered })
    else {
      for (const call of model.open.keys()) this.cancel(call)
      this.take('turn_failed')
    }
  }

  play(one: Step): void {
    const { model } = this
    const calls = [...model.open.keys()]
    switch (one.do) {
      case 'open': {
        const origin = one.direct ? ({ kind: 'application' } as const) : undefined
        model.open.set(this.take('tool_call_started', {}, origin), { direct: one.direct })
        break
      }
      case 'emit':
      case 'finish':
      case 'cancel': {
        const call = calls[one.call % Math.max(calls.length, 1)]
        if (call === undefined) break
        if (one.do === 'emit') this.take('news', 1, { kind: 'tool', sequence: call })
        else if (one.do === 'finish') this.finish(call)
        else this.cancel(call)
        break
      }
      case 'interrupt':
        this.take('session_interrupted')
        for (const call of calls) this.cancel(call)
        this.end(false)
        break
      case 'stop':
        model.forget()
        this.wakes = forget(this.wakes)
        model.commit(record(model.next, 'session_suspended'))
        break
      case 'succeed':
      case 'fail':
        this.end(one.do === 'succeed')
        break
      case 'wait':
        model.now += one.ms
        break
      default:
        one satisfies never
    }
    this.start()
  }
}

describe('wakes against a session that looks at all records again', () => {
  it('agree on what is due after every step, and leave nothing undelivered when all goes well', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const play = new Play()
        for (const one of steps) play.play(one)
        for (let rounds = 0; play.model.pending.length > 0 || play.model.isRunning; rounds++) {
          expect(rounds).toBeLessThan(200)
          play.play({ do: 'wait', ms: 5 })
          play.play({ do: 'succeed' })
        }
        expect(play.wakes.phase).toBe('quiet')
      }),
      { numRuns: 500 },
    )
  })
})
