/** A size as WebAssembly writes it. */
export function leb128(size: number): number[] {
  const bytes: number[] = []
  for (let rest = size; ; rest >>>= 7) {
    if (rest < 0x80) return [...bytes, rest]
    bytes.push((rest & 0x7f) | 0x80)
  }
}

/** A number of 32 bits, with its sign, as WebAssembly writes constants. */
export function signedLeb128(value: number): number[] {
  const bytes: number[] = []
  for (let rest = value | 0; ; rest >>= 7) {
    const low = rest & 0x7f
    if (rest >> 6 === 0 || rest >> 6 === -1) return [...bytes, low]
    bytes.push(low | 0x80)
  }
}
