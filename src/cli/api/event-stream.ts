import type { Json } from '../../kernel/json.ts'

/** A committed record, as clients see it (contract 3.1). */
export type EventRecord = {
  readonly sequence: number
  readonly recorded_at_ms: number
  readonly event_type: string
  readonly data: Json
}

/** Durable frames of an event stream, as they arrive; live ones, which have no id, are left out (contract 3.5). */
export async function* readEvents(stream: ReadableStream<Uint8Array>): AsyncGenerator<EventRecord> {
  const utf8 = new TextDecoder()
  let text = ''
  for await (const chunk of stream) {
    text += utf8.decode(chunk, { stream: true })
    const frames = text.split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames) {
      const lines = frame.split('\n')
      const data = lines.filter((line) => line.startsWith('data: ')).map((line) => line.slice('data: '.length))
      if (lines.some((line) => line.startsWith('id: '))) yield JSON.parse(data.join('\n')) as EventRecord
    }
  }
}
