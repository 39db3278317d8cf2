import { randomUUID } from 'node:crypto'
import { dataOf, type JournalRecord } from '../../src/journal/record.ts'
import { followEvents } from '../support/follow-events.ts'
import type { TestServer } from '../support/server.ts'

/** Component ids by the name of the tool that each one is. */
export type ToolIds = Readonly<Record<'effect' | 'background' | 'slow', string>>

const ok = (value: unknown) => ({ status: 'ok', value })
const effect = (id: string) => ({ id, file: 'effects' })

/** Long enough to outlive the turn that starts it. */
const BACKGROUND_MS = 500

/** Two effects and a background tool at once, which wakes the session later; then a tool that only a cancellation ends. */
const SCRIPT = [
  {
    tool_calls: [
      { name: 'effect', input: effect('one') },
      { name: 'effect', input: effect('two') },
      {
        name: 'background',
        input: {
          steps: [
            { do: 'returned', outcome: ok('early') },
            { do: 'sleep', ms: BACKGROUND_MS },
            { do: 'emit', kind: 'effect_done', payload: { id: 'background' } },
            { do: 'finish', outcome: ok('late') },
          ],
        },
      },
    ],
  },
  { text: 'waiting' },
  { text: 'woken' },
  { tool_calls: [{ name: 'slow', input: { how: 'sleep', loop: true } }] },
  { text: 'never' },
]

/** Before the first record: the create request leaves. */
export const REQUESTED = 'requested'

/** The last record of every append of the scenario, about in order. A journal that ends elsewhere has half an append. */
export const APPEND_POINTS: readonly string[] = [
  'session_creation_started',
  'environment_setup_started',
  'environment_setup_ended',
  'session_creation_ended',
  'turn_started go',
  'tool_call_started direct',
  'activation_started',
  'transcript_delta user text',
  'kv_set',
  'model_call_started 1',
  'model_call_ended 1',
  'transcript_delta assistant tool_use',
  'tool_call_started background',
  'effect_done direct',
  'tool_call_ended direct',
  'effect_done one',
  'tool_call_ended one',
  'effect_done two',
  'tool_call_ended two',
  'tool_call_returned background',
  'transcript_delta user tool_result',
  'model_call_started 2',
  'model_call_ended 2',
  'transcript_delta assistant text',
  'output_emitted',
  'turn_ended',
  'effect_done background',
  'tool_call_ended background',
  'turn_started events',
  'model_call_started 3',
  'model_call_ended 3',
  'turn_started more',
  'model_call_started 4',
  'model_call_ended 4',
  'tool_call_started slow',
  'session_interrupted',
  'tool_call_ended slow',
  'tool_cancel_ended slow',
  'turn_failed',
  'session_end_started',
  'environment_detach_started',
  'environment_detach_ended',
  'session_ended',
]

/** Leave in one go with the append after them, so that a crash between the two is a matter of luck. */
export const JOINED_POINTS: readonly string[] = ['transcript_delta assistant tool_use']

/** The kind of the last of some records, and what that record is about. */
export function pointOf(records: readonly JournalRecord[]): string {
  const last = records.at(-1)
  const about = last === undefined ? undefined : subjectOf(last, records)
  return [last?.event_type ?? 'nothing', ...(about === undefined ? [] : [about])].join(' ')
}

function subjectOf(record: JournalRecord, records: readonly JournalRecord[]): string | undefined {
  const turn = dataOf(record, 'turn_started')
  if (turn !== undefined) return 'input' in turn ? turn.input.message : turn.trigger
  const message = dataOf(record, 'transcript_delta')?.append.at(-1)
  if (message !== undefined) return `${message.role} ${message.content.at(-1)?.type}`
  if (record.event_type === 'effect_done') return (record.data as { id: string }).id
  if (record.event_type.startsWith('model_call')) {
    const starts = records.filter(({ event_type: kind }) => kind === 'model_call_started')
    return String(starts.length)
  }
  return record.event_type.startsWith('tool_') ? callOf(record, records) : undefined
}

/** The call that a record belongs to, by its effect or its tool. */
function callOf(record: JournalRecord, records: readonly JournalRecord[]): string | undefined {
  const own = dataOf(record, 'tool_call_started')
  if (own !== undefined) return (own.invocation.input as { id?: string }).id ?? own.tool
  const named = (record.data as { sequence?: number; target_sequence?: number }) ?? {}
  const start = records[(named.target_sequence ?? named.sequence ?? 0) - 1]
  return start === undefined ? undefined : callOf(start, records)
}

/** One session that goes through the scenario, and what the server acknowledged of it. */
export class Passage {
  readonly #server: TestServer
  readonly #onPoint: (point: string) => void
  readonly acknowledged: JournalRecord[] = []
  /** Requests that are driven under a key of their own, by path. */
  readonly keys = new Map<string, { readonly key: string; readonly body: unknown }>()
  id: string | undefined

  constructor(server: TestServer, onPoint: (point: string) => void) {
    this.#server = server
    this.#onPoint = onPoint
  }

  /** From creation to end. Rejects with a TypeError when the server is killed. */
  async run(tools: ToolIds, labels: Readonly<Record<string, string>>): Promise<void> {
    this.#onPoint(REQUESTED)
    const created = await this.#server.post('/v1/sessions', creation(tools, labels))
    if (created.status !== 200) throw new Error(`no session: ${created.status} ${created.text}`)
    this.id = created.body.session_id as string
    const watching = followEvents(`${this.#server.url}/v1/sessions/${this.id}/events`, (record) => {
      this.acknowledged.push(record)
      this.#onPoint(pointOf(this.acknowledged))
    })
    await Promise.all([this.#drive(), watching])
  }

  async #drive(): Promise<void> {
    await Promise.all([
      this.#post('messages', { input: { message: 'go' } }),
      this.#post('tools/effect/calls', { input: effect('direct') }),
    ])
    await this.#until((kind, count) => kind === 'output_emitted' && count === 2)
    const second = this.#post('messages', { input: { message: 'more' } }, 'second')
    await Promise.race([
      second,
      this.#until((kind, _, record) => kind === 'tool_call_started' && dataOf(record, kind)?.tool === 'slow'),
    ])
    await this.#post('cancel')
    await second
    await this.#post('end')
  }

  async #post(path: string, body?: unknown, name = path): Promise<void> {
    const key = randomUUID()
    this.keys.set(name, { key, body })
    const { status, text } = await this.#server.post(`/v1/sessions/${this.id}/${path}`, body, { key })
    if (status >= 300) throw new Error(`${path} was refused: ${status} ${text}`)
  }

  /** Resolves when a record was acknowledged, given its kind and how many of that kind there were. */
  async #until(isIt: (kind: string, count: number, record: JournalRecord) => boolean): Promise<void> {
    const counts = new Map<string, number>()
    for (let next = 0; ;) {
      const record = this.acknowledged[next]
      if (record === undefined) {
        await new Promise((resolve) => setTimeout(resolve, 1))
        if (this.isCut) throw new TypeError('the server was killed')
        continue
      }
      next++
      const count = (counts.get(record.event_type) ?? 0) + 1
      counts.set(record.event_type, count)
      if (isIt(record.event_type, count, record)) return
    }
  }

  /** The server was killed. */
  isCut = false
}

function creation({ effect: effects, background, slow }: ToolIds, labels: Readonly<Record<string, string>>): unknown {
  const tools = { effect: effects, background, slow }
  return {
    labels,
    model: { provider: 'scripted', name: 'script', api_key: 'k', script: SCRIPT },
    tools: Object.entries(tools).map(([name, id]) => ({
      name,
      placements: { box: { implementation: { type: 'brain_component', entrypoint: 'run', id, configuration: {} } } },
    })),
    environments: [
      { name: 'box', driver: 'brain', lifecycle: 'automatic', configuration: { filesystem: { workspace: 'write' } } },
    ],
  }
}
