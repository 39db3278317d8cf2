/** The Encoding Standard's TextEncoder: UTF-8. */
export class GuestTextEncoder {
  readonly encoding = 'utf-8'

  encode(text = ''): Uint8Array {
    const given = String(text)
    const target = new Uint8Array(given.length * 3)
    return target.slice(0, this.encodeInto(given, target).written)
  }

  encodeInto(text: string, target: Uint8Array): { read: number; written: number } {
    let read = 0
    let written = 0
    for (const character of String(text).toWellFormed()) {
      const code = character.codePointAt(0) as number
      const length = lengthOf(code)
      if (written + length > target.length) break
      if (length === 1) target[written] = code
      else writeSequence(target, written, code, length)
      written += length
      read += character.length
    }
    return { read, written }
  }
}

function lengthOf(code: number): number {
  if (code < 0x80) return 1
  if (code < 0x800) return 2
  return code < 0x1_0000 ? 3 : 4
}

const LEADS = [0, 0, 0xc0, 0xe0, 0xf0]

function writeSequence(target: Uint8Array, at: number, code: number, length: number): void {
  target[at] = (LEADS[length] as number) | (code >> (6 * (length - 1)))
  for (let index = 1; index < length; index++) target[at + index] = 0x80 | ((code >> (6 * (length - 1 - index))) & 0x3f)
}
