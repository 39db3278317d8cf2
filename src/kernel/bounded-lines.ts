export type Line = { readonly number: number; readonly bytes: Buffer }

export type LineBounds = {
  readonly lineBytes: number
  /** Of all lines together; default: any number. */
  readonly allBytes?: number
  /** Makes the error of a line that is refused. */
  readonly refusal: (line: number, reason: string) => Error
}

const LINE_FEED = 0x0a

/**
 * Splits bytes into lines and never holds more than one line and one chunk.
 *
 * @throws what `refusal` makes, when a line or all of them are larger than allowed, or the last has no end
 */
export async function* boundedLines(
  chunks: AsyncIterable<Buffer>,
  { lineBytes, allBytes = Number.POSITIVE_INFINITY, refusal }: LineBounds,
): AsyncGenerator<Line> {
  let number = 1
  let all = 0
  let held: Buffer[] = []
  let heldBytes = 0
  for await (const chunk of chunks) {
    all += chunk.length
    if (all > allBytes) throw refusal(number, `the input is larger than ${allBytes} bytes`)
    let start = 0
    for (let end = chunk.indexOf(LINE_FEED); ; end = chunk.indexOf(LINE_FEED, start)) {
      const part = chunk.subarray(start, end < 0 ? undefined : end)
      held.push(part)
      heldBytes += part.length
      if (heldBytes > lineBytes) throw refusal(number, `it is longer than ${lineBytes} bytes`)
      if (end < 0) break
      yield { number: number++, bytes: Buffer.concat(held) }
      ;[held, heldBytes, start] = [[], 0, end + 1]
    }
  }
  if (heldBytes > 0) throw refusal(number, 'the input ends in the middle of it')
}
