/** One event of an event stream. */
export type EventFrame = { readonly event: string; readonly id: string | undefined; readonly data: string }

/**
 * Reads Server-Sent Events, wherever the bytes are cut. Comments are passed over, and so is a last frame without its end.
 * The body is cancelled when the reader stops.
 */
export async function* eventFrames(body: ReadableStream<Uint8Array>): AsyncGenerator<EventFrame, void, undefined> {
  let frame: string[] = []
  for await (const lines of linesOf(body))
    for (const line of lines) {
      if (line !== '') frame.push(line)
      if (line !== '' || frame.length === 0) continue
      const read = frameOf(frame)
      frame = []
      if (read !== undefined) yield read
    }
}

/** The lines that are whole, as they come. */
async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string[], void, undefined> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let pieces: string[] = []
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const piece = decoder.decode(value, { stream: true })
      const isInLine = !/[\r\n]/.test(piece) && pieces.at(-1)?.endsWith('\r') !== true
      pieces.push(piece)
      if (isInLine) continue
      // A final CR may be half of CRLF: it waits for what follows it.
      const lines = pieces.join('').split(/\r\n|\n|\r(?!$)/)
      pieces = [lines.pop() ?? '']
      yield lines
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

function frameOf(lines: readonly string[]): EventFrame | undefined {
  let event = 'message'
  let id: string | undefined
  const data: string[] = []
  for (const line of lines) {
    const [, field = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
    if (field === 'event') event = value
    else if (field === 'data') data.push(value)
    else if (field === 'id') id = value
  }
  return data.length === 0 ? undefined : { event, id, data: data.join('\n') }
}
