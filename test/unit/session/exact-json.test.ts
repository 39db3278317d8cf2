import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { defaultLimits } from '../../../src/contract/limits.ts'
import { localTenant, type SessionId } from '../../../src/kernel/ids.ts'
import { parseJson, type Json } from '../../../src/kernel/json.ts'
import type { Message } from '../../../src/contract/message.ts'
import { openMemoryJournal } from '../../../src/journal/memory/memory-journal.ts'
import { openSqliteJournal } from '../../../src/journal/sqlite/sqlite-journal.ts'
import { dataOf, type JournalRecord } from '../../../src/journal/record.ts'
import { type Harness, sharedHarnesses, TOOL_IMPLEMENTATION, toolNamed } from '../../support/session-harness.ts'

const open = sharedHarnesses()

/** What is carried, as texts of JSON (cases D-16, D-17): each must be printed the same again. */
const CARRIED = [
  '"a\\u0000b"',
  '"\\ud800x"',
  '"x\\udc00"',
  '"😀\\u0001\\u001f\u007f\u2028\ufeff"',
  '{"__proto__":{"x":1},"constructor":2,"toString":3,"":4,"toJSON":5}',
  '[9007199254740991,-9007199254740991,0.1,100,100000000000000000000,1e+300,0]',
  '['.repeat(50) + ']'.repeat(50),
]
const CARRIED_TEXT = `[${CARRIED.join(',')}]`

/** What is refused wherever JSON comes in (cases D-11, D-17, D-18). */
const REFUSED = [
  '9007199254740993',
  '{"a":[12345678901234567890]}',
  '1e400',
  'NaN',
  '[Infinity]',
  '{"a":undefined}',
  '{"a":1,}',
  '['.repeat(65) + ']'.repeat(65),
]

const WORDS = ['a\u0000b', '\ud800x', 'x\udc00', '😀']

type Told = {
  readonly id: SessionId
  readonly records: readonly JournalRecord[]
  readonly messages: readonly Message[]
}

/** One session in which every value takes every way there is. */
async function tell(harness: Harness): Promise<Told> {
  const value = parseJson(CARRIED_TEXT, 'it')
  const text = JSON.stringify(value)
  const words = WORDS.join('|')
  const placements = { box: { implementation: { ...TOOL_IMPLEMENTATION, configuration: value } } }
  const id = await harness.create({
    tools: [{ ...(toolNamed('t') as object), placements } as Json, toolNamed('sad')],
    script: [
      {
        text: words,
        tool_calls: [
          { name: 't', input: { value } },
          { name: 'sad', input: {} },
        ],
      },
      { text: words },
    ],
    system: words,
    labels: { words: words.slice(0, 9) },
    transcript: [{ role: 'user', content: [{ type: 'native', format: 'f', data: value }] }],
  })
  harness.binding.script = async ({ call, services }) => {
    if (call.tool === 'sad') {
      const error = { code: 'sad', message: words, retryable: true, details: value }
      await services.finish(JSON.stringify({ status: 'error', error, content: words }))
      return { type: 'result', text: '' }
    }
    expect(JSON.parse(call.input)).toEqual({ value })
    await services.emit('note', text)
    await services.emitResult(`{"status":"ok","value":${text}}`)
    await services.model(JSON.stringify({ messages: [{ role: 'user', content: [{ type: 'text', text: words }] }] }))
    await services.finish(`{"status":"ok","value":{"value":${text}}}`)
    return { type: 'result', text: '' }
  }
  await harness.send(id, words)
  const { messages } = await harness.service.transcript(localTenant, id)
  return { id, records: await harness.records(id), messages }
}

function expectExact({ records, messages }: Told): void {
  const value: unknown = parseJson(CARRIED_TEXT, 'it')
  const words = WORDS.join('|')
  const of = (kind: string): readonly JournalRecord[] => records.filter((record) => record.event_type === kind)
  const configuration = dataOf(of('session_creation_started')[0] as JournalRecord, 'session_creation_started')
  expect(configuration).toMatchObject({ system: words, labels: { words: words.slice(0, 9) } })
  const implementation: unknown = configuration?.tools[0]?.placements['box']?.implementation
  expect(implementation).toMatchObject({ configuration: value })
  expect(of('turn_started')[0]?.data).toEqual({ input: { message: words } })
  const note: unknown = of('note')[0]?.data
  expect(note).toEqual(value)
  const results: readonly unknown[] = of('tool_result_emitted').flatMap(
    (record) => dataOf(record, 'tool_result_emitted')?.result ?? [],
  )
  const error = { code: 'sad', message: words, retryable: true, details: value }
  expect(results).toContainEqual(expect.objectContaining({ output: value, is_error: false }))
  expect(results).toContainEqual(expect.objectContaining({ output: { value }, is_error: false }))
  expect(results).toContainEqual(expect.objectContaining({ output: error, is_error: true, content: words }))
  expect(JSON.stringify(records)).toContain(CARRIED_TEXT)
  const seed: unknown = messages[0]
  expect(seed).toEqual({ role: 'user', content: [{ type: 'native', format: 'f', data: value }] })
  expect(messages[1]).toEqual({ role: 'user', content: [{ type: 'text', text: words }] })
  expect(messages[2]?.content[1]).toMatchObject({ type: 'tool_use', input: { value } })
  const answers: unknown = messages[3]?.content
  expect(answers).toMatchObject([{ content: [value, { value }] }, { content: words, is_error: true }])
  expect(messages[4]?.content).toEqual([{ type: 'text', text: words }])
}

describe('JSON is kept exact on every way', () => {
  it('in memory', async () => {
    await using harness = open({ journal: openMemoryJournal({ limits: defaultLimits }) })
    expectExact(await tell(harness))
  })

  it('in SQLite, before and after a restart, and in what is streamed', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'brain-exact-'))
    const reopen = async (): Promise<Harness> =>
      open({ journal: await openSqliteJournal({ directory, limits: defaultLimits }) })
    try {
      let told: Told
      {
        await using before = await reopen()
        told = await tell(before)
        expectExact(told)
      }
      await using after = await reopen()
      const records = await after.records(told.id)
      expect(records).toEqual(told.records)
      const { messages } = await after.service.transcript(localTenant, told.id)
      expectExact({ ...told, records, messages })
      await after.end(told.id)
      const streamed: JournalRecord[] = []
      const never = new AbortController().signal
      for await (const item of await after.feed.follow(localTenant, told.id, 0, never))
        if (item.type === 'record') streamed.push(item.record)
      expect(streamed.slice(0, records.length)).toEqual(records)
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })
})

describe('JSON that cannot be kept', () => {
  it('is refused by name from every way in, and the call and the session go on', async () => {
    await using harness = open()
    const id = await harness.create({ tools: [toolNamed('t')] })
    for (const text of REFUSED) {
      const answer = harness.call(id, 't', {})
      const { services } = await harness.binding.next()
      const refused = { code: 'invalid_request' }
      await expect(services.emit('note', text), text).rejects.toMatchObject(refused)
      await expect(services.emitResult(`{"status":"ok","value":${text}}`), text).rejects.toMatchObject(refused)
      const request = `{"messages":[{"role":"user","content":[{"type":"native","format":"f","data":${text}}]}]}`
      await expect(services.model(request), text).rejects.toMatchObject(refused)
      await expect(services.finish(`{"status":"ok","value":${text}}`), text).rejects.toMatchObject({
        code: 'invalid_output',
      })
      expect((await answer).outcome).toMatchObject({ status: 'error', error: { code: 'invalid_output' } })
    }
    const returned = harness.call(id, 't', {})
    const { end } = await harness.binding.next()
    end({ type: 'result', text: '{"id":9007199254740993}' })
    expect((await returned).outcome).toMatchObject({
      status: 'error',
      error: { code: 'invalid_output', message: expect.stringContaining('9007199254740993') },
    })
    expect(await harness.kinds(id)).not.toContain('note')
    await harness.send(id, 'go on')
  })
})
