// A list of texts as bytes: per text u32 length (0xffffffff = absent) and UTF-8. Used where a guest's words cross a trust
// boundary, so that nothing of them has to be parsed on the way.

const ABSENT = 0xffff_ffff

/** The texts in a row; bytes are taken as UTF-8 already. */
export function packTexts(texts: readonly (string | Uint8Array | undefined)[]): Buffer {
  let size = 0
  for (const text of texts)
    size += 4 + (text === undefined ? 0 : typeof text === 'string' ? Buffer.byteLength(text) : text.length)
  const out = Buffer.allocUnsafe(size)
  let at = 0
  for (const text of texts) {
    const start = at + 4
    if (text === undefined) {
      out.writeUInt32LE(ABSENT, at)
      at = start
      continue
    }
    const length = typeof text === 'string' ? out.write(text, start) : (out.set(text, start), text.length)
    out.writeUInt32LE(length, at)
    at = start + length
  }
  return out
}

/** The texts still as bytes of `packed`. @throws RangeError when cut short */
export function unpackBytes(packed: Buffer, start = 0): (Buffer | undefined)[] {
  const out: (Buffer | undefined)[] = []
  for (let at = start; at < packed.length;) {
    const length = packed.readUInt32LE(at)
    at += 4
    if (length === ABSENT) {
      out.push(undefined)
      continue
    }
    if (at + length > packed.length) throw new RangeError('a text is cut short')
    out.push(packed.subarray(at, at + length))
    at += length
  }
  return out
}

/** @throws RangeError when cut short */
export const unpackTexts = (packed: Buffer, start = 0): (string | undefined)[] =>
  unpackBytes(packed, start).map((bytes) => bytes?.toString('utf8'))
