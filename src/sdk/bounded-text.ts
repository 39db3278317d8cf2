/**
 * Reads a body as text, and no more of it than `most` bytes.
 *
 * @returns undefined when there is more; what remains is not read
 * @throws what the body fails with
 */
export async function boundedText(body: ReadableStream<Uint8Array> | null, most: number): Promise<string | undefined> {
  if (body === null) return ''
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let text = ''
  let size = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    size += value.byteLength
    if (size > most) {
      // What the other side makes of it is its own affair.
      reader.cancel().catch(() => {})
      return undefined
    }
    text += decoder.decode(value, { stream: true })
  }
}
