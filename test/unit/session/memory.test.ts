import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it, vi } from 'vitest'
import { BrainError } from '../../../src/kernel/errors.ts'
import { defaultLimits } from '../../../src/contract/limits.ts'
import { localTenant, type SessionId } from '../../../src/kernel/ids.ts'
import { openMemoryJournal } from '../../../src/journal/memory/memory-journal.ts'
import { dataOf } from '../../../src/journal/record.ts'
import { expectSoundJournal } from '../../support/journal-checks.ts'
import { type Harness, sharedHarnesses, toolNamed } from '../../support/session-harness.ts'

const open = sharedHarnesses()

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const idsIn = (harness: Harness): readonly SessionId[] => harness.sessions.all.map(({ log }) => log.session)
const use = (name: string) => ({ tool_calls: [{ name, input: {} }] })

describe('the memory of a session', () => {
  it('goes back to nothing once it is idle, and everything is there again on its next use', async () => {
    await using harness = open()
    const id = await harness.create({ script: [{ text: 'one' }, { text: 'two' }], idle_ttl_ms: 1 })
    const other = await harness.create()
    await harness.send(id, 'first')
    await harness.end(other)
    const held = harness.sessions.all.map((session) => new WeakRef(session))
    await vi.waitFor(async () => expect((await harness.kinds(id)).at(-1)).toBe('session_suspended'))
    await vi.waitFor(() => {
      harness.sessions.letGo(0)
      expect(idsIn(harness)).toEqual([])
    })
    await vi.waitFor(() => {
      collect()
      expect(held.filter((session) => session.deref() !== undefined).length).toBe(0)
    })
    await harness.send(id, 'second')
    const { messages } = await harness.service.transcript(localTenant, id)
    expect(messages.map(({ content: [block] }) => block?.type === 'text' && block.text)).toEqual([
      'first',
      'one',
      'second',
      'two',
    ])
    expectSoundJournal(await harness.records(id))
  })

  it('is kept while somebody waits for it, follows it, or something of it goes on', async () => {
    await using harness = open()
    const id = await harness.create({ tools: [toolNamed('t')], script: [use('t'), { text: 'ok' }] })
    const expectKept = (): void => {
      harness.sessions.letGo(0)
      expect(idsIn(harness)).toEqual([id])
    }
    const reader = new AbortController()
    await harness.feed.follow(localTenant, id, 0, reader.signal)
    expectKept()
    reader.abort()
    await harness.sessions.use(localTenant, id, async () => expectKept())
    const sent = harness.send(id, 'go')
    const { services } = await harness.binding.next()
    expectKept()
    await services.returned(undefined)
    await sent
    expectKept()
    await services.finish(undefined)
    await vi.waitFor(() => {
      harness.sessions.letGo(0)
      expect(idsIn(harness)).toEqual([])
    })
  })

  it('is kept for those that never suspend, until they are over', async () => {
    await using harness = open()
    const id = await harness.create({ idle_ttl_ms: 0 })
    await harness.send(id, 'hi')
    harness.sessions.letGo(0)
    expect(idsIn(harness)).toEqual([id])
    expect(await harness.kinds(id)).not.toContain('session_resumed')
    await harness.end(id)
    harness.sessions.letGo(0)
    expect(idsIn(harness)).toEqual([])
  })

  it('is not kept by a message that was not taken, and the next turn says that it opens the session', async () => {
    let isBroken = false
    await using harness = open({ fault: () => (isBroken ? 'disk full' : undefined) })
    const id = await harness.create()
    const send = (key: string) =>
      harness.once(
        `session:${id}:message`,
        async (claim) => {
          const summary = await harness.service.send(localTenant, id, { message: 'hi' }, claim)
          return { answer: { status: 200, body: JSON.stringify(summary) } }
        },
        key,
      )
    const first = await send('one')
    expect(await send('one')).toEqual(expect.objectContaining(first))
    isBroken = true
    await expect(send('two')).rejects.toMatchObject({ code: 'storage_unavailable' })
    isBroken = false
    harness.sessions.letGo(0)
    expect(idsIn(harness)).toEqual([])
    await send('two')
    const kinds = await harness.kinds(id)
    expect(kinds.filter((kind) => kind === 'session_resumed')).toHaveLength(2)
    expect(kinds[kinds.lastIndexOf('turn_started') - 1]).toBe('session_resumed')
  })

  it('is bounded when many sessions come at once', async () => {
    await using harness = open()
    const ids: SessionId[] = []
    for (let count = 0; count < 700; count++) ids.push(await harness.create())
    expect(harness.sessions.all.length).toBeLessThanOrEqual(512)
    const summaries = await Promise.all(ids.map((id) => harness.service.get(localTenant, id)))
    expect(summaries.map((summary) => summary.session_id)).toEqual(ids)
    expect(harness.sessions.all.length).toBeLessThanOrEqual(512)
  })

  it('holds one live session of an id, however many ask for it while it comes and goes', async () => {
    await using harness = open()
    const id = await harness.create({ script: [{ text: 'ok' }] })
    await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        for (let step = 0; step < index % 7; step++) await Promise.resolve()
        harness.sessions.letGo(0)
        await (index % 3 === 0 ? harness.send(id, String(index)) : harness.service.get(localTenant, id))
      }),
    )
    const records = await harness.records(id)
    expectSoundJournal(records)
    expect(records.filter((record) => record.event_type === 'turn_ended')).toHaveLength(14)
    expect((await harness.service.get(localTenant, id)).last_sequence).toBe(records.length)
  })
})

describe('a background tool', () => {
  it('outlives its turn and the suspension of its session, with its deadline and budget, and opens it again', async () => {
    await using harness = open({ limits: { emittedBytes: 400 } })
    const script = [use('t'), { text: 'waiting' }, { text: 'got it' }]
    const id = await harness.create({ tools: [toolNamed('t')], script, idle_ttl_ms: 1 })
    const sent = harness.send(id, 'go')
    const { services, call } = await harness.binding.next()
    const text = JSON.stringify('x'.repeat(200))
    await services.emit('n', text)
    await services.returned(undefined)
    await sent
    await vi.waitFor(async () => expect((await harness.kinds(id)).at(-1)).toBe('session_suspended'))
    harness.sessions.letGo(0)
    await expect(services.emit('n', `${text.slice(0, -1)}${'x'.repeat(50)}"`)).rejects.toMatchObject({
      code: 'emit_limit',
    })
    await services.finish('{"status":"ok","value":"late"}')
    await vi.waitFor(async () => expect(JSON.stringify(await harness.records(id))).toContain('got it'))
    await vi.waitFor(async () => expect((await harness.kinds(id)).at(-1)).toBe('session_suspended'))
    const records = await harness.records(id)
    const kinds = records.map((record) => record.event_type)
    const woken = kinds.lastIndexOf('turn_started')
    expect(kinds[woken - 1]).toBe('session_resumed')
    expect(records[woken]?.data).toEqual({ trigger: 'events' })
    const started = records.flatMap((record) => dataOf(record, 'tool_call_started') ?? [])
    expect(started[0]?.deadline_ms).toBe(120_000)
    expect(call.deadlineInMs).toBeLessThanOrEqual(120_000)
    expectSoundJournal(records)
  })
})

describe('recovery', () => {
  it('of one session that cannot be read does not keep the others from starting', async () => {
    const journal = openMemoryJournal({ limits: defaultLimits })
    const before = open({ journal })
    const ids = [
      await before.create({ tools: [toolNamed('t')], script: [use('t')] }),
      await before.create({ tools: [toolNamed('t')], script: [use('t')] }),
    ]
    for (const id of ids) {
      void before.send(id, 'go')
      await before.binding.next()
    }
    const [damaged, sound] = ids
    let isDamaged = true
    const page: typeof journal.page = (session, ...rest) =>
      session === damaged && isDamaged
        ? Promise.reject(new BrainError('storage_unavailable', 'Cannot read the journal: a page is damaged'))
        : journal.page(session, ...rest)
    const unsteady = new Proxy(journal, {
      get: (target, name) => {
        if (name === 'page') return page
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
    await using after = open({ journal: unsteady })
    await after.sessions.recover()
    expect((await after.kinds(sound as SessionId)).at(-1)).toBe('turn_failed')
    await expect(after.service.get(localTenant, damaged as SessionId)).rejects.toMatchObject({
      code: 'storage_unavailable',
    })
    isDamaged = false
    expect((await after.service.get(localTenant, damaged as SessionId)).status).toBe('idle')
    expect((await after.kinds(damaged as SessionId)).at(-1)).toBe('turn_failed')
  })
})
