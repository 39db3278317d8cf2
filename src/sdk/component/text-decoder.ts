const REPLACEMENT = 0xfffd
const BYTE_ORDER_MARK = 0xfeff
const CHUNK = 8192
const LABELS = new Set(['utf-8', 'utf8', 'unicode-1-1-utf-8', 'unicode11utf8', 'unicode20utf8', 'x-unicode20utf8'])

type Source = ArrayBufferLike | ArrayBufferView

const bytesOf = (source: Source): Uint8Array =>
  ArrayBuffer.isView(source)
    ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
    : new Uint8Array(source)

type Sequence = { code: number; missing: number; lowest: number; highest: number }

const none = (): Sequence => ({ code: 0, missing: 0, lowest: 0x80, highest: 0xbf })

/** What a lead byte begins; undefined for a byte that begins nothing. */
function begun(byte: number): Sequence | undefined {
  if (byte >= 0xc2 && byte <= 0xdf) return { ...none(), code: byte & 0x1f, missing: 1 }
  if (byte >= 0xe0 && byte <= 0xef) {
    const lowest = byte === 0xe0 ? 0xa0 : 0x80
    return { code: byte & 0xf, missing: 2, lowest, highest: byte === 0xed ? 0x9f : 0xbf }
  }
  if (byte < 0xf0 || byte > 0xf4) return undefined
  return { code: byte & 7, missing: 3, lowest: byte === 0xf0 ? 0x90 : 0x80, highest: byte === 0xf4 ? 0x8f : 0xbf }
}

/** The Encoding Standard's TextDecoder, of UTF-8 alone. */
export class GuestTextDecoder {
  readonly encoding = 'utf-8'
  readonly fatal: boolean
  readonly ignoreBOM: boolean
  #sequence = none()
  #isBegun = false

  constructor(label = 'utf-8', options: { readonly fatal?: boolean; readonly ignoreBOM?: boolean } = {}) {
    if (!LABELS.has(String(label).trim().toLowerCase()))
      throw new RangeError(`Cannot decode "${label}": a component decodes UTF-8 only`)
    this.fatal = options.fatal === true
    this.ignoreBOM = options.ignoreBOM === true
  }

  decode(source?: Source, { stream = false }: { readonly stream?: boolean } = {}): string {
    const codes: number[] = []
    let text = ''
    const bytes = source === undefined ? new Uint8Array() : bytesOf(source)
    for (let at = 0; at < bytes.length; at++) {
      if (this.#take(bytes[at] as number, codes)) at--
      if (codes.length >= CHUNK) text += this.#textOf(codes)
    }
    if (!stream && this.#sequence.missing > 0) this.#fail(codes)
    text += this.#textOf(codes)
    if (!stream) this.#isBegun = false
    return text
  }

  /** @returns whether the byte is to be looked at once more, as the beginning of something else */
  #take(byte: number, codes: number[]): boolean {
    const sequence = this.#sequence
    if (sequence.missing === 0) {
      if (byte < 0x80) codes.push(byte)
      else {
        const begins = begun(byte)
        if (begins === undefined) this.#fail(codes)
        else this.#sequence = begins
      }
      return false
    }
    if (byte < sequence.lowest || byte > sequence.highest) {
      this.#fail(codes)
      return true
    }
    this.#sequence = { ...none(), code: (sequence.code << 6) | (byte & 0x3f), missing: sequence.missing - 1 }
    if (this.#sequence.missing > 0) return false
    codes.push(this.#sequence.code)
    this.#sequence = none()
    return false
  }

  #fail(codes: number[]): void {
    this.#sequence = none()
    if (this.fatal) {
      this.#isBegun = false
      throw new TypeError('The encoded data is not valid UTF-8')
    }
    codes.push(REPLACEMENT)
  }

  #textOf(codes: number[]): string {
    if (codes.length === 0) return ''
    const isMarked = !this.#isBegun && !this.ignoreBOM && codes[0] === BYTE_ORDER_MARK
    this.#isBegun = true
    const text = String.fromCodePoint(...(isMarked ? codes.slice(1) : codes))
    codes.length = 0
    return text
  }
}
