import type { JournalRecord } from '../../src/journal/record.ts'

/** Tells every record that the event stream of a session shows, until the stream ends or breaks. */
export async function followEvents(
  url: string,
  onRecord: (record: JournalRecord) => void,
  signal?: AbortSignal,
): Promise<void> {
  const follow = signal === undefined ? {} : { signal }
  try {
    const response = await fetch(url, { headers: { accept: 'text/event-stream' }, ...follow })
    let pending = ''
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const frames = (pending + chunk).split('\n\n')
      pending = frames.pop() ?? ''
      for (const record of frames.flatMap(recordsIn)) onRecord(record)
    }
  } catch (error) {
    // The server was killed, or its reader has seen enough.
    if (!(error instanceof TypeError) && (error as Error).name !== 'AbortError') throw error
  }
}

/** A frame with an id is a record; the others are live only, or keep the connection open. */
function recordsIn(frame: string): JournalRecord[] {
  const data = /^id: [\s\S]*^data: (.*)$/m.exec(frame)?.[1]
  return data === undefined ? [] : [JSON.parse(data) as JournalRecord]
}
