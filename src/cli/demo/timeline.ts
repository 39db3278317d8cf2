import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.ts'
import type { EventRecord } from '../api/event-stream.ts'
import { clipped, printable } from '../printable.ts'

const WIDTH = 118

/** Head of the table that {@link Timeline.line} fills. */
export const TIMELINE_HEAD = `${'#'.padStart(4)}  ${'since start'.padStart(11)}  ${'step'.padStart(8)}  record`

/** Turns records into lines: sequence, time since the first one and since the one before, what it is about. */
export class Timeline {
  #first: number | undefined
  #previous = 0

  line({ sequence, recorded_at_ms: at, event_type: type, data }: EventRecord): string {
    this.#first ??= at
    const step = this.#previous === 0 ? '' : `+${at - this.#previous} ms`
    this.#previous = at
    const head = `${String(sequence).padStart(4)}  ${`${at - this.#first} ms`.padStart(11)}  ${step.padStart(8)}  `
    return clipped(`${head}${printable(type).padEnd(26)} ${printable(summaryOf(type, data))}`, WIDTH).trimEnd()
  }
}

/** What a record is about, in the words of its data. */
function summaryOf(type: string, data: Json): string {
  if (!isJsonObject(data)) return JSON.stringify(data)
  const member = (name: string): JsonObject => objectOf(data[name])
  switch (type) {
    case 'session_creation_started':
    case 'session_creation_ended':
    case 'transcript_delta':
    case 'turn_ended':
      return ''
    case 'environment_setup_started':
      return textOf(data['environment'])
    case 'environment_setup_ended':
      return `of ${textOf(data['sequence'])}`
    case 'turn_started':
      return textOf(member('input')['message'])
    case 'model_call_started':
      return `${textOf(data['messages'])} messages`
    case 'model_call_ended':
      return blocksOf(objectOf(member('result')['message'])['content'])
    case 'tool_call_started':
      return `${textOf(data['tool'])} ${JSON.stringify(member('invocation')['input'])}`
    case 'tool_result_emitted':
      return JSON.stringify(member('result')['output'])
    case 'tool_call_ended':
      return `of ${textOf(data['sequence'])}: ${textOf(member('outcome')['status'])}`
    default:
      return Object.keys(data).length === 0 ? '' : JSON.stringify(data)
  }
}

const objectOf = (value: Json | undefined): JsonObject => (isJsonObject(value) ? value : {})
const textOf = (value: Json | undefined): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : ''

function blocksOf(content: Json | undefined): string {
  const blocks = Array.isArray(content) ? (content as readonly Json[]).map(objectOf) : []
  return blocks
    .map((block) => (block['type'] === 'tool_use' ? `calls ${textOf(block['name'])}` : textOf(block['text'])))
    .join('; ')
}
