/** Thrown by {@link textLines}: bytes that are no UTF-8. */
export class NotUtf8 extends Error {
  override readonly name = 'NotUtf8'
}

const LINE_END = /\r\n|\n|\r/g

/**
 * Splits a stream of bytes into lines without their ends, which may be CRLF, LF or CR. Text is decoded across chunks,
 * and a piece of a line is looked through once, however small the chunks are. What follows the last end is a line too.
 *
 * @param charge told of text before it is kept, to count and bound it; no piece belongs to two lines
 * @throws NotUtf8, and what `charge` throws
 */
export async function* textLines(
  body: AsyncIterable<Uint8Array>,
  charge: (piece: string) => void,
): AsyncGenerator<string> {
  let pieces: string[] = []
  let endsWithReturn = false
  for await (const decoded of textOf(body)) {
    // The line feed of a CRLF that two chunks share.
    const text = endsWithReturn && decoded.startsWith('\n') ? decoded.slice(1) : decoded
    if (decoded !== '') endsWithReturn = decoded.endsWith('\r')
    let from = 0
    for (const { 0: end, index } of text.matchAll(LINE_END)) {
      const piece = text.slice(from, index)
      charge(piece)
      yield pieces.length === 0 ? piece : pieces.join('') + piece
      pieces = []
      from = index + end.length
    }
    const rest = text.slice(from)
    if (rest === '') continue
    charge(rest)
    pieces.push(rest)
  }
  if (pieces.length > 0) yield pieces.join('')
}

/** A byte order mark at the start is dropped by the decoder. */
async function* textOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const utf8 = new TextDecoder('utf-8', { fatal: true })
  for await (const chunk of body) yield decode(() => utf8.decode(chunk, { stream: true }))
  yield decode(() => utf8.decode())
}

function decode(read: () => string): string {
  try {
    return read()
  } catch (cause) {
    throw new NotUtf8('bytes that are no UTF-8', { cause })
  }
}
