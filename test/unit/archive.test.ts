import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { exportSession } from '../../src/archive/export-session.ts'
import { importSession } from '../../src/archive/import-session.ts'
import { archiveJournal, archiveWriter } from '../../src/compose.ts'
import { defaultLimits } from '../../src/contract/limits.ts'
import { boundedLines } from '../../src/kernel/bounded-lines.ts'
import { newSessionId, type SessionId, type TenantId } from '../../src/kernel/ids.ts'
import { openSqliteJournal } from '../../src/journal/sqlite/sqlite-journal.ts'
import type { NewRecord } from '../../src/journal/record.ts'
import { event, everything } from '../contract/journal-contract.ts'

function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'brain-archive-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

const configuration = {
  agentloop: {
    implementation: { type: 'brain_component', entrypoint: 'turn', id: 'c'.repeat(64) },
    environment: 'box',
    configuration: null,
  },
  model: { provider: 'scripted', name: 'script' },
  system: '',
  tools: [
    {
      name: 'look',
      description: '',
      input_schema: {},
      placements: { box: { implementation: { type: 'brain_component', entrypoint: 'run', id: 'b'.repeat(64) } } },
    },
  ],
  environments: [
    { name: 'box', driver: 'brain', lifecycle: 'automatic', configuration: {} },
    { name: 'app', driver: 'host', host_id: 'host_00000000000000000000', lifecycle: 'automatic', configuration: [1] },
  ],
} as const

const HARD = { text: 'a\u0000b\ud800x 😀', ['__proto__']: 1, large: 1e20, small: 5e-324, deep: [[[[]]]] }
const failure = { code: 'interrupted', message: 'm', retryable: false, ambiguous: true }

const RECORDS: readonly NewRecord[] = [
  { kind: 'session_creation_started', data: configuration },
  { kind: 'session_creation_ended', data: { configuration } },
  event(HARD),
  {
    kind: 'model_call_started',
    data: { system: '', tools: [], messages: 0, context: { through_sequence: 0, delta: { keep: 0, append: [] } } },
  },
  { kind: 'model_call_failed', data: { sequence: 4, ...failure } },
  event('last'),
]

let session: SessionId
let directory: string
let lines: readonly string[]

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'brain-archive-'))
  session = newSessionId()
  let now = 1000
  const clock = { now: () => (now += 7), monotonic: () => now }
  {
    await using journal = await openSqliteJournal({ directory, limits: defaultLimits, clock })
    const create = { tenant: 'local' as TenantId, labels: { colour: 'red\ud800' } }
    await journal.append({ session, create, records: RECORDS.slice(0, 2), status: 'idle' })
    await journal.append({ session, records: RECORDS.slice(2) })
  }
  using snapshot = archiveJournal.openIn(directory)
  lines = [...exportSession(snapshot, session)]
})
afterAll(() => rmSync(directory, { recursive: true }))

/** Whether a data directory has the session, without opening a journal for writing. */
function isIn(place: string): boolean {
  using snapshot = archiveJournal.openIn(place)
  return snapshot.session(session) !== undefined
}

async function put(place: string, text: string | Buffer) {
  const bytes = Buffer.from(text)
  // In small pieces, so that lines and characters are cut anywhere.
  const chunks = (async function* () {
    for (let at = 0; at < bytes.length; at += 61) yield bytes.subarray(at, at + 61)
  })()
  const { insert } = archiveWriter(place, undefined)
  return importSession({ directory: place, chunks, insert, beforeCommit: async () => {} })
}

/** The file with its records changed, and an end that agrees with it. */
function forged(lines: readonly string[], change: (lines: string[]) => void): string {
  const changed = lines.slice(0, -1)
  change(changed)
  const before = changed.join('')
  const sha256 = createHash('sha256').update(before).digest('hex')
  return `${before}${JSON.stringify({ end: { records: changed.length - 1, sha256 } })}\n`
}

const edit = (line: number, change: (value: any) => void) => (lines: string[]) => {
  const value = JSON.parse(lines[line - 1]!)
  change(value)
  lines[line - 1] = `${JSON.stringify(value)}\n`
}

describe('exportSession() and importSession()', () => {
  it('carry a session into another journal exactly, times, labels and all', async () => {
    expect(JSON.parse(lines[0]!)).toEqual({
      format: 'brain-session',
      version: 1,
      session_id: session,
      tenant: 'local',
      status: 'idle',
      last_sequence: 6,
      labels: { colour: 'red\ud800' },
    })
    const other = temporaryDirectory()
    expect(await put(other, lines.join(''))).toEqual({
      session_id: session,
      status: 'idle',
      records: 6,
      missing_components: ['b'.repeat(64), 'c'.repeat(64)],
    })
    const contents = async (place: string) => {
      await using journal = await openSqliteJournal({ directory: place, limits: defaultLimits })
      const { records } = await journal.page(session, 0, everything)
      return {
        records,
        row: await journal.session(session),
        found: await journal.sessions({ label: { key: 'colour', value: 'red\ud800' } }),
      }
    }
    const moved = await contents(other)
    expect(moved).toEqual(await contents(directory))
    expect(JSON.stringify(moved.records[2]?.data)).toBe(JSON.stringify(HARD))
    using snapshot = archiveJournal.openIn(other)
    expect([...exportSession(snapshot, session)]).toEqual(lines)
    // And a session goes on where it was.
    await using journal = await openSqliteJournal({ directory: other, limits: defaultLimits })
    expect(await journal.append({ session: session, records: [event(1)] })).toMatchObject({
      records: [{ sequence: 7 }],
    })
  })

  it('refuse a session that is there, or a directory that is in use, and change nothing', async () => {
    await expect(put(directory, lines.join(''))).rejects.toMatchObject({
      code: 'conflict',
      message: `Cannot import session "${session}": it is there, and nothing is overwritten; delete it first, or import into another data directory`,
    })
    const other = temporaryDirectory()
    await using journal = await openSqliteJournal({ directory: other, limits: defaultLimits })
    await expect(put(other, lines.join(''))).rejects.toThrow('another server uses it; stop the other server')
    expect(await journal.sessions({})).toEqual([])
  })

  it('refuse every file that no server wrote, naming the line, and import nothing of it', async () => {
    const whole = lines.join('')
    const deep = `${'['.repeat(200)}${']'.repeat(200)}`
    const cases: readonly (readonly [file: string | Buffer, message: string | RegExp])[] = [
      ['', 'Cannot import line 1: the file is empty'],
      ['{}\n', 'line 1: the file is no export of a session'],
      ['null\n', 'line 1: the file is no export of a session'],
      [
        whole.replace('"version":1', '"version":2'),
        'line 1: this version of Brain reads exports of version 1, and not 2',
      ],
      [
        forged(
          lines,
          edit(1, (header) => (header.session_id = '../x')),
        ),
        'line 1: ✖ must be "ses_"',
      ],
      [
        forged(
          lines,
          edit(1, (header) => (header.status = 'running')),
        ),
        'line 1: it says that the session is running, and its records come to idle',
      ],
      [
        forged(
          lines,
          edit(1, (header) => (header.more = 1)),
        ),
        'line 1: ✖ Unrecognized key: "more"',
      ],
      [whole.slice(0, -20), 'line 8: the input ends in the middle of it'],
      [lines.slice(0, -1).join(''), 'line 8: it is missing: the file was cut short'],
      [lines.slice(0, 4).join(''), 'line 5: it is missing: the file was cut short'],
      [`${whole}{}\n`, 'line 9: nothing may follow the line of the end'],
      [whole.replace('"last"', '"lost"'), 'line 8: the lines before it are not those that were exported'],
      [Buffer.from(whole.replace('😀', '\u00ff'), 'latin1'), 'line 4: it is not UTF-8'],
      [whole.replace('"last"', '"last'), 'Cannot import line 7: it is not usable JSON'],
      [whole.replace('"last"', deep), 'Cannot import line 7: it is nested deeper than 96 levels'],
      [
        whole.replace('"last"', '9007199254740993'),
        'Cannot import line 7: it is not usable JSON: the number 9007199254740993',
      ],
      [forged(lines, (all) => all.splice(3, 1)), 'line 4: its sequence is 4, and 3 comes next'],
      [
        forged(
          lines,
          edit(4, (record) => (record.recorded_at_ms = 1)),
        ),
        'line 4: it was recorded before the record that is before it',
      ],
      [
        forged(
          lines,
          edit(4, (record) => delete record.origin),
        ),
        'line 4: an event of kind "note" must say its origin',
      ],
      [
        forged(
          lines,
          edit(4, (record) => (record.event_type = 'environment_unreachable')),
        ),
        'knows no records of kind "environment_unreachable"',
      ],
      [
        forged(
          lines,
          edit(2, (record) => (record.event_type = 'session_resumed')),
        ),
        'line 2: session_creation_started must be the first record',
      ],
      [
        forged(
          lines,
          edit(2, (record) => (record.data.model.api_key = 'k')),
        ),
        'is a credential, which no record holds',
      ],
      [
        forged(
          lines,
          edit(2, (record) => (record.data.agentloop.implementation = null)),
        ),
        'line 2: as session_creation_started its data is not right',
      ],
      [
        forged(
          lines,
          edit(7, (record) => ((record.event_type = 'transcript_delta'), (record.data = { keep: 0, append: 5 }))),
        ),
        'line 7: as transcript_delta its data is not right',
      ],
      [
        forged(
          lines,
          edit(6, (record) => (record.data.sequence = 3)),
        ),
        'line 6: model_call_failed names 3, where no model_call is open',
      ],
      [
        forged(
          lines,
          edit(7, (record) => ((record.event_type = 'tool_call_returned'), (record.data = { sequence: 4 }))),
        ),
        'line 7: tool_call_returned names 4, where no tool call started',
      ],
    ]
    const place = temporaryDirectory()
    for (const [file, message] of cases) {
      const refused = put(place, file)
      await expect(refused, String(message)).rejects.toMatchObject({ code: 'invalid_request' })
      await expect(refused).rejects.toThrow(message)
    }
    expect(isIn(place)).toBe(false)
  })

  it('import nothing when the step before the commit fails', async () => {
    const place = temporaryDirectory()
    const { insert } = archiveWriter(place, undefined)
    const beforeCommit = async (): Promise<void> => {
      throw new Error('no room for its key')
    }
    const chunks = (async function* () {
      yield Buffer.from(lines.join(''))
    })()
    await expect(importSession({ directory: place, chunks, insert, beforeCommit })).rejects.toThrow(
      'no room for its key',
    )
    expect(isIn(place)).toBe(false)
  })
})

it('boundedLines() holds no more than it may, however long a line or a file is', async () => {
  let sent = 0
  const endless = async function* (text: string): AsyncGenerator<Buffer> {
    for (;;) {
      sent += text.length
      yield Buffer.from(text)
    }
  }
  const drain = async (text: string): Promise<void> => {
    const refusal = (line: number, reason: string): Error => new Error(`line ${line}: ${reason}`)
    for await (const _ of boundedLines(endless(text), { lineBytes: 1000, allBytes: 50_000, refusal }));
  }
  await expect(drain('x'.repeat(100))).rejects.toThrow('line 1: it is longer than 1000 bytes')
  expect(sent).toBeLessThan(1200)
  await expect(drain(`${'x'.repeat(99)}\n`)).rejects.toThrow('line 501: the input is larger than 50000 bytes')
})
