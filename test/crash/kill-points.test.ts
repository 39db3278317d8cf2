import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JournalRecord, Origin } from '../../src/journal/record.ts'
import { recoveryOf, SessionState } from '../../src/journal/session-state.ts'
import { expectSoundJournal } from '../support/journal-checks.ts'
import { fixture, startServer, type TestServer, TestSession } from '../support/server.ts'
import { seededRandom, soakOr } from '../support/soak.ts'
import { APPEND_POINTS, JOINED_POINTS, Passage, pointOf, REQUESTED, type ToolIds } from './crash-scenario.ts'

const KILLS = soakOr(500, Number.POSITIVE_INFINITY)
const SLICE_MS = soakOr(Number.POSITIVE_INFINITY, 6000)
/** Sessions that go through the scenario at once: each needs four boxes. */
const LANES = 3
/** A lane that starts later is elsewhere when the kill comes. */
const STAGGER_MS = 150
const LATEST_KILL_MS = 4000

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server[Symbol.asyncDispose]())

/** When to kill: so long after a lane has come to a point, or after the start. */
type Aim = { readonly point: string | undefined; readonly delayMs: number }

/** Points where no crash has been yet are aimed at a few appends before them, since the server goes on meanwhile. */
function aimAt(left: readonly string[], random: () => number): Aim {
  const point = left[Math.floor(random() * left.length)]
  if (point === undefined || random() < 0.2) return { point: undefined, delayMs: 100 + random() * 2000 }
  const at = APPEND_POINTS.indexOf(point) - Math.floor(random() * 4)
  return at <= 2 ? { point: REQUESTED, delayMs: random() * 30 } : { point: APPEND_POINTS[at], delayMs: random() * 3 }
}

/** Lets lanes go through the scenario again and again, and kills the server there. */
async function crash(tools: ToolIds, trial: number, aim: Aim): Promise<Passage[]> {
  const passages: Passage[] = []
  const aimed = Promise.withResolvers<void>()
  const onPoint = (point: string): void => (point === aim.point ? aimed.resolve() : undefined)
  let isKilled = false
  const lane = async (_: unknown, index: number): Promise<void> => {
    await sleep(index * STAGGER_MS)
    while (!isKilled) {
      const passage = new Passage(server, onPoint)
      passages.push(passage)
      try {
        await passage.run(tools, { trial: String(trial) })
      } catch (error) {
        if (!isKilled || !(error instanceof TypeError)) throw error
      }
    }
  }
  const lanes = Promise.all(Array.from({ length: LANES }, lane))
  await Promise.race([aim.point === undefined ? sleep(aim.delayMs) : aimed.promise, sleep(LATEST_KILL_MS), lanes])
  const killAt = performance.now() + (aim.point === undefined ? 0 : aim.delayMs)
  while (performance.now() < killAt); // a timer is not exact enough
  isKilled = true
  for (const passage of passages) passage.isCut = true
  await server.kill('SIGKILL')
  await lanes
  return passages
}

const stateOf = (records: readonly JournalRecord[]): SessionState => {
  const state = new SessionState()
  for (const record of records) state.apply(record)
  return state
}

/** Records without the place and the time that the journal gives them. */
const contentOf = (kind: string, { data, origin }: { data?: unknown; origin?: Origin }): unknown => ({
  kind,
  data,
  ...(origin === undefined ? {} : { origin }),
})

/** How many records there were when the server was killed: the rest is what recovery must add to them, and no more. */
function lengthAtCrash(records: readonly JournalRecord[], acknowledged: number): number {
  for (let length = Math.max(1, acknowledged); length < records.length; length++) {
    const due = recoveryOf(stateOf(records.slice(0, length))).records
    const rest = records.slice(length).map((record) => contentOf(record.event_type, record))
    const added = due.map((record) => contentOf(record.kind, record))
    if (isDeepStrictEqual(added, rest)) return length
  }
  expect(records.filter(({ data }) => (data as { code?: string } | null)?.code === 'interrupted')).toEqual([])
  return records.length
}

/** Sessions whose credentials are kept. */
const sealed = (): string[] =>
  readdirSync(join(server.directory, 'data/credentials')).flatMap((name) => /^(.*)\.sealed$/.exec(name)?.[1] ?? [])

describe('kill -9 of the server at any append', () => {
  it('of parallel calls, a background tool, a cancellation and an end: the journal is what was acknowledged and its ends', async () => {
    const random = seededRandom('kill-points')
    const tools: ToolIds = {
      effect: await server.admit(await fixture('effect')),
      background: await server.admit(await fixture('outcomes')),
      slow: await server.admit(await fixture('slow')),
    }
    const hits = new Map<string, number>()
    const made = new Set<string>()
    let [kills, checked, sessions, unanswered] = [0, 0, 0, 0]
    const end = performance.now() + SLICE_MS
    for (; kills < KILLS && performance.now() < end; kills++) {
      const left = APPEND_POINTS.filter((point) => !hits.has(point))
      const passages = await crash(tools, kills, aimAt(left.length > 0 ? left : APPEND_POINTS, random))
      await server.start()
      const { body } = await server.get(`/v1/sessions?label=trial:${kills}`)
      const known = new Map(passages.map((passage) => [passage.id, passage]))
      const listed = body.sessions as { session_id: string; last_sequence: number }[]
      const ids = listed.map(({ session_id: id }) => id)
      expect(ids).toEqual(expect.arrayContaining(passages.flatMap(({ id }) => id ?? [])))
      for (const id of ids) made.add(id)
      await expect.poll(() => sealed().filter((id) => !made.has(id)), { timeout: 5000 }).toEqual([])
      const lastOf = async ({ session_id: id }: (typeof listed)[number]) =>
        (await server.get(`/v1/sessions/${id}`)).body.last_sequence as number
      // Recovery does not wait until somebody looks.
      expect(await Promise.all(listed.map(lastOf))).toEqual(listed.map((one) => one.last_sequence))
      for (const id of ids) {
        const session = new TestSession(server, id, 'effect')
        const { point, acknowledged, isIdle } = await check(session, known.get(id))
        if (isIdle && id === ids.at(-1)) await session.value({ id: 'after', file: 'effects' })
        await expectEffectsOnce(session)
        hits.set(point, (hits.get(point) ?? 0) + 1)
        checked += acknowledged
        sessions++
        if (!known.has(id)) unanswered++
      }
    }
    expect([...hits.keys()].filter((point) => !APPEND_POINTS.includes(point))).toEqual([])
    process.stdout.write(
      `kill-points: ${kills} kills, ${sessions} sessions (${unanswered} of an unanswered create), ${checked} acknowledged records checked; ` +
        `crashed at ${hits.size} of ${APPEND_POINTS.length} append points: ${[...hits.keys()].join(', ')}\n`,
    )
    const due = APPEND_POINTS.filter((point) => !JOINED_POINTS.includes(point))
    if (KILLS !== Number.POSITIVE_INFINITY) expect(due.filter((point) => !hits.has(point))).toEqual([])
    expect(kills).toBeGreaterThan(0)
  })
})

/** @returns where the crash found the session, and how much of it had been acknowledged */
async function check(
  session: TestSession,
  passage: Passage | undefined,
): Promise<{ readonly point: string; readonly acknowledged: number; readonly isIdle: boolean }> {
  const acknowledged = passage?.acknowledged ?? []
  const records = await session.records()
  expectSoundJournal(records)
  expect(records.slice(0, acknowledged.length)).toEqual(acknowledged)
  const length = lengthAtCrash(records, acknowledged.length)
  const state = stateOf(records)
  const { body: summary } = await server.get(session.path)
  expect(summary).toEqual({ session_id: session.id, status: state.status, last_sequence: records.length })
  const { body: transcript } = await server.get(`${session.path}/transcript`)
  expect(transcript).toEqual({ messages: state.transcript, through_sequence: records.length })
  await expectNothingRepeated(session, passage, records)
  const point = pointOf(records.slice(0, length))
  return { point, acknowledged: acknowledged.length, isIdle: state.status === 'idle' }
}

const isOf = (kind: string, data: string) => (record: JournalRecord) =>
  record.event_type === kind && JSON.stringify(record.data).startsWith(data)

/** The record with which the work of a request begins, by its name. */
const BEGINNINGS: Readonly<Record<string, (record: JournalRecord) => boolean>> = {
  messages: isOf('turn_started', '{"input":{"message":"go"'),
  second: isOf('turn_started', '{"input":{"message":"more"'),
  'tools/effect/calls': (record) => record.event_type === 'tool_call_started' && record.origin?.kind === 'application',
  cancel: isOf('session_interrupted', ''),
  end: isOf('session_end_started', ''),
}

/** What reached the journal is not done again for the same key: the answer is the recorded one, or says that it is lost. */
async function expectNothingRepeated(
  session: TestSession,
  passage: Passage | undefined,
  records: readonly JournalRecord[],
): Promise<void> {
  for (const [name, hasBegun] of Object.entries(BEGINNINGS)) {
    const sent = passage?.keys.get(name)
    if (sent === undefined || !records.some(hasBegun)) continue
    const path = name === 'second' ? 'messages' : name
    const { status, body } = await server.post(`${session.path}/${path}`, sent.body, { key: sent.key })
    if (status >= 300) expect(body).toMatchObject({ code: 'ambiguous' })
  }
  expect(await session.records()).toEqual(records)
}

/** No effect was done twice, and every one that has a record was done. */
async function expectEffectsOnce(session: TestSession): Promise<void> {
  const marks = (await session.records()).flatMap(({ event_type: kind, data }) =>
    kind === 'effect_done' ? [(data as { id: string }).id] : [],
  )
  expect(new Set(marks).size).toBe(marks.length)
  const { status, text } = await session.file('effects')
  // A guest that was killed between a text and its line end leaves them torn: ids are told apart by how they begin.
  const lines = status === 404 ? [] : text.split(/(?=one|two|direct|after)|\n/).filter((line) => line !== '')
  expect(new Set(lines).size).toBe(lines.length)
  expect(lines).toEqual(expect.arrayContaining(marks.filter((mark) => mark !== 'background')))
}
