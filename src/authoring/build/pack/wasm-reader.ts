/** Reads what a toolchain wrote, which is trusted to be well formed. */
export class WasmReader {
  readonly #bytes: Uint8Array
  at: number

  constructor(bytes: Uint8Array, at = 0) {
    this.#bytes = bytes
    this.at = at
  }

  get isAtEnd(): boolean {
    return this.at >= this.#bytes.length
  }

  byte(): number {
    const byte = this.#bytes[this.at++]
    if (byte === undefined) throw new Error('Cannot read the component: it ends too early')
    return byte
  }

  size(): number {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = this.byte()
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
  }

  signed(): number {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = this.byte()
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return byte & 0x40 ? value - scale * 128 : value
    }
  }

  bytes(length: number): Uint8Array {
    if (this.at + length > this.#bytes.length) throw new Error('Cannot read the component: it ends too early')
    this.at += length
    return this.#bytes.subarray(this.at - length, this.at)
  }
}

export type Section = { readonly id: number; readonly content: Uint8Array }

/** The sections of a component or a core module. */
export function sectionsOf(binary: Uint8Array): readonly Section[] {
  const reader = new WasmReader(binary, 8)
  const sections: Section[] = []
  while (!reader.isAtEnd) sections.push({ id: reader.byte(), content: reader.bytes(reader.size()) })
  return sections
}
