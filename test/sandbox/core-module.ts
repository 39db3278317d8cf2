/** LEB128. */
function leb(value: number): number[] {
  const out: number[] = []
  do {
    const low = value & 0x7f
    value >>>= 7
    out.push(value > 0 ? low | 0x80 : low)
  } while (value > 0)
  return out
}

const section = (id: number, content: readonly number[]): number[] => [id, ...leb(content.length), ...content]
const name = (text: string): number[] => [text.length, ...Buffer.from(text)]

/**
 * A core module with a memory of `pages` and the functions `grow(pages) -> old pages or -1`, `spin()` and `fill()`, which
 * writes over all 16 MiB of its memory for ever; `startSpins` makes `spin` its start function.
 */
export function coreModule({ pages = 1, startSpins = false }: { pages?: number; startSpins?: boolean } = {}): Buffer {
  const body = (code: readonly number[]) => [...leb(code.length + 1), 0, ...code]
  const spin = [0x03, 0x40, 0x0c, 0x00, 0x0b, 0x0b]
  const grow = [0x20, 0x00, 0x40, 0x00, 0x0b]
  // loop { memory.fill(0, 1, 16 MiB) }
  const fill = [
    0x03, 0x40, 0x41, 0x00, 0x41, 0x01, 0x41, 0x80, 0x80, 0x80, 0x08, 0xfc, 0x0b, 0x00, 0x0c, 0x00, 0x0b, 0x0b,
  ]
  return Buffer.from([
    0x00,
    0x61,
    0x73,
    0x6d,
    0x01,
    0x00,
    0x00,
    0x00,
    ...section(1, [2, 0x60, 0, 0, 0x60, 1, 0x7f, 1, 0x7f]),
    ...section(3, [3, 0, 1, 0]),
    ...section(5, [1, 0x00, ...leb(pages)]),
    ...section(7, [4, ...name('memory'), 2, 0, ...name('spin'), 0, 0, ...name('grow'), 0, 1, ...name('fill'), 0, 2]),
    ...(startSpins ? section(8, [0]) : []),
    ...section(10, [3, ...body(spin), ...body(grow), ...body(fill)]),
  ])
}
