import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { defaultLimits } from '../../../src/contract/limits.ts'
import { localTenant, newSessionId, type SessionId } from '../../../src/kernel/ids.ts'
import { openMemoryJournal } from '../../../src/journal/memory/memory-journal.ts'
import { openSqliteJournal } from '../../../src/journal/sqlite/sqlite-journal.ts'
import { readAll } from '../../../src/journal/session-log.ts'
import { scriptedProvider } from '../../../src/model/scripted/scripted-provider.ts'
import { soakOr } from '../../support/soak.ts'
import { openHarness, toolNamed } from '../../support/session-harness.ts'

const TURNS = 1000
const IDLE = soakOr(10_000, 1200)

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** What is left after a forced collection, bytes. */
function memoryInUse(): number {
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

describe('growth', () => {
  it('of a history is linear: 1,000 turns with a tool call each are at most three times their transcript', async () => {
    const use = { text: 'I look it up.', tool_calls: [{ name: 'look', input: { what: 'q'.repeat(100) } }] }
    const answers = Array.from({ length: 2 * TURNS }, (_, n) => (n % 2 === 0 ? use : { text: 'a'.repeat(300) }))
    await using harness = openHarness({ providers: [scriptedProvider(answers)] })
    harness.binding.script = async ({ services }) => {
      await services.finish(JSON.stringify({ status: 'ok', value: { found: 'f'.repeat(4000) } }))
      return undefined
    }
    const model = { provider: 'scripted', name: 'script', api_key: 'k' }
    const id = await harness.create({ model, tools: [toolNamed('look')] })
    await harness.sessions.use(localTenant, id, async (session) => {
      const bytesOfHistory = async (): Promise<number> => {
        let sum = 0
        for await (const records of readAll(harness.journal, id)) sum += JSON.stringify(records).length
        return sum
      }
      const turns = async (count: number): Promise<void> => {
        for (let n = 0; n < count; n++) {
          const started = await session.turns.start({ message: 'u'.repeat(200) }, undefined)
          if ('done' in started) await started.done
        }
      }
      await turns(TURNS / 2)
      const half = await bytesOfHistory()
      await turns(TURNS / 2)
      const whole = await bytesOfHistory()
      expect(session.state.transcript.length).toBe(4 * TURNS)
      expect(whole - half).toBeLessThan(half * 1.02)
      expect(whole).toBeLessThan(3 * JSON.stringify(session.state.transcript).length)
    })
  })

  it.each([
    [100, 6.9],
    [500, 4.0],
    [2000, 3.1],
  ])('of a talk in which answers have %d characters stays below %d times its transcript', async (length, most) => {
    const text = (characters: number): string => 'so they said '.repeat(characters).slice(0, characters)
    await using harness = openHarness({ providers: [scriptedProvider([{ text: text(length) }])] })
    const id = await harness.create({ model: { provider: 'scripted', name: 'script', api_key: 'k' } })
    await harness.sessions.use(localTenant, id, async (session) => {
      for (let n = 0; n < 100; n++) {
        const started = await session.turns.start({ message: text(length * 0.6) }, undefined)
        if ('done' in started) await started.done
      }
      const transcript = JSON.stringify(session.state.transcript).length
      expect(JSON.stringify(await harness.records(id)).length / transcript).toBeLessThan(most)
    })
  })

  it('of the number of sessions does not slow the start down: it reads no journal but of those that were at work', async () => {
    const journal = openMemoryJournal({ limits: defaultLimits })
    await using before = openHarness({ journal })
    for (let n = 0; n < 300; n++) await before.create()
    const busy = newSessionId()
    await journal.append({
      session: busy,
      create: { tenant: localTenant, labels: {} },
      records: [],
      status: 'creating',
    })
    const read = new Set<SessionId>()
    const page = journal.page.bind(journal)
    journal.page = (session, ...rest) => {
      read.add(session)
      return page(session, ...rest)
    }
    await openHarness({ journal }).sessions.recover()
    expect([...read]).toEqual([busy])
  })

  it('of the number of sessions fills no memory: quiet ones are let go, and read again when they are asked for', async () => {
    await using harness = openHarness()
    const ids: SessionId[] = []
    for (let n = 0; n < 700; n++) ids.push(await harness.create())
    const later = performance.now() + 3_600_000
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => later)
    onTestFinished(() => clock.mockRestore())
    await harness.create()
    await vi.waitUntil(() => harness.sessions.all.length <= 512)
    expect(await harness.service.get(localTenant, ids[0]!)).toMatchObject({ status: 'idle', last_sequence: 4 })
  })

  it(`of idle sessions costs no more than 20 MiB, and after the first ones nothing: ${IDLE} sessions`, async () => {
    const directory = mkdtempSync(join(tmpdir(), 'brain-growth-'))
    await using harness = openHarness({ journal: await openSqliteJournal({ directory, limits: defaultLimits }) })
    onTestFinished(() => rmSync(directory, { recursive: true }))
    const make = async (count: number): Promise<void> => {
      for (let made = 0; made < count; made += 50)
        await Promise.all(Array.from({ length: 50 }, () => harness.create({ tools: [toolNamed('look')] })))
    }
    const before = memoryInUse()
    await make(IDLE / 2)
    const half = memoryInUse()
    await make(IDLE / 2)
    const whole = memoryInUse()
    expect(whole - before).toBeLessThan(20 * 2 ** 20)
    expect(whole - half).toBeLessThan(2 * 2 ** 20)
  })
})
