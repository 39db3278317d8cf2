import { signedLeb128, leb128 } from '../leb128.ts'

/** Where things are in the memory of a module. */
export type Layout = {
  /** Where the unpacked bytes begin and end. */
  readonly from: number
  readonly to: number
  /** How many packed bytes there are, in data segment 0. */
  readonly size: number
}

/**
 * Bytes beyond the end that are needed while they are unpacked over what is packed, which comes to lie at the end: the
 * packed bytes not yet read are never reached (LZ4_DECOMPRESS_INPLACE_MARGIN of lz4.h, whose 32 bytes are for copies that
 * go beyond what is asked for).
 */
export const marginOf = (size: number): number => (size >> 8) + 32

const [SOURCE, TARGET, TOKEN, LENGTH, OFFSET] = [0, 1, 2, 3, 4] as const

/** Instructions, in groups. */
type Code = readonly (number | Code)[]

const get = (local: number): Code => [0x20, local]
const set = (local: number): Code => [0x21, local]
const number = (value: number): Code => [0x41, signedLeb128(value)]
const add = (local: number, value: Code): Code => [get(local), value, 0x6a, set(local)]
const load8 = (address: Code): Code => [address, 0x2d, 0, 0]
const load16 = (address: Code): Code => [address, 0x2f, 0, 0]
const copy = [0xfc, 0x0a, 0, 0]
const fill = [0xfc, 0x0b, 0]
const [LOOP, IF, ELSE, END] = [0x03, 0x04, 0x05, 0x0b] as const
const [EQUAL, LESS, AT_LEAST, AND, SHIFT_RIGHT, SUBTRACT] = [0x46, 0x49, 0x4f, 0x71, 0x76, 0x6b] as const
const NOTHING = 0x40
const jumpIf = (depth: number): Code => [0x0d, depth]

const flat = (code: Code): number[] => code.flatMap((part) => (typeof part === 'number' ? [part] : flat(part)))

const [LOAD_8, STORE_8] = [0x29, 0x37] as const

/** Copies 16 bytes, for what is that long at most: what is written beyond it is written once more. */
const copy16 = (address: Code): Code => [
  [get(TARGET), address, LOAD_8, 0, 0, STORE_8, 0, 0],
  [get(TARGET), address, LOAD_8, 0, 8, STORE_8, 0, 8],
]

/** Whether the length is 16 at most, of which most are: a bulk copy costs a call each. */
const isShort: Code = [get(LENGTH), number(17), LESS]

/** A length of 15 goes on in the bytes that follow, up to one that is not 255. */
const extended: Code = [
  [get(LENGTH), number(15), EQUAL, IF, NOTHING, LOOP, NOTHING],
  [load8(get(SOURCE)), set(OFFSET), add(SOURCE, number(1)), add(LENGTH, get(OFFSET))],
  [get(OFFSET), number(255), EQUAL, jumpIf(0), END, END],
]

const literals: Code = [
  [load8(get(SOURCE)), set(TOKEN), add(SOURCE, number(1))],
  [get(TOKEN), number(4), SHIFT_RIGHT, set(LENGTH), extended],
  [isShort, IF, NOTHING, copy16(get(SOURCE)), ELSE, get(TARGET), get(SOURCE), get(LENGTH), copy, END],
  [add(TARGET, get(LENGTH)), add(SOURCE, get(LENGTH))],
]

const from: Code = [get(TARGET), get(OFFSET), SUBTRACT]

/** Copies of what has just been written: short ones, of one byte, of bytes that are all there, of bytes yet to come. */
const match: Code = [
  [get(TOKEN), number(15), AND, set(LENGTH)],
  // The offset is kept in TOKEN while the length is read.
  [load16(get(SOURCE)), set(TOKEN), add(SOURCE, number(2)), extended],
  [add(LENGTH, number(4)), get(TOKEN), set(OFFSET)],
  [isShort, get(OFFSET), number(8), AT_LEAST, AND, IF, NOTHING, copy16(from), add(TARGET, get(LENGTH)), ELSE],
  [get(OFFSET), number(1), EQUAL, IF, NOTHING],
  [get(TARGET), load8(from), get(LENGTH), fill, add(TARGET, get(LENGTH)), ELSE],
  [get(OFFSET), get(LENGTH), AT_LEAST, IF, NOTHING],
  [get(TARGET), from, get(LENGTH), copy, add(TARGET, get(LENGTH)), ELSE],
  [add(LENGTH, get(TARGET)), LOOP, NOTHING],
  [get(TARGET), load8(from), 0x3a, 0, 0, add(TARGET, number(1))],
  [get(TARGET), get(LENGTH), LESS, jumpIf(0), END, END, END, END],
]

/** The body of a function `() -> ()` that unpacks data segment 0 to its place, with its size in front. */
export function unpackerBody({ from: start, to, size }: Layout): number[] {
  const margin = marginOf(size)
  const source = to + margin - size
  const code: Code = [
    [1, 5, 0x7f],
    [number(source), number(0), number(size), 0xfc, 0x08, 0, 0],
    [number(source), set(SOURCE), number(start), set(TARGET)],
    [LOOP, NOTHING, literals, get(TARGET), number(to), LESS, IF, NOTHING, match, 0x0c, 1, END, END],
    [number(to), number(0), number(margin), fill, 0xfc, 0x09, 0, END],
  ]
  const bytes = flat(code)
  return [...leb128(bytes.length), ...bytes]
}
