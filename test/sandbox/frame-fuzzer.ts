import { scripted } from './lab.ts'

/**
 * A guest that speaks to the supervisor past the runtime, and wrongly: frames of every type, some right, most of them
 * changed, cut, joined or sent twice. Its input is a seed: `{"seed":1}` always sends the same bytes.
 */
export const FRAME_FUZZER = scripted(
  `
  let state = JSON.parse(invocation.inputJson).seed >>> 0
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (end) => Math.floor(random() * end)
  const pick = (items) => items[below(items.length)]
  const number = () => pick([0, 1, 2, 47, 255, 4096, 65536, 2 ** 31 - 1, 2 ** 32 - 1, below(2 ** 32)]) >>> 0
  const text = () => pick(['', 'a', '.', '..', '/', 'a/../..', 'file', 'x'.repeat(300), '\\0', 'a'.repeat(5000), '{}', '1'])
  const real = () => pick([0, 1, 4096, -1, 1e300, NaN, Infinity, 2 ** 53, below(2 ** 32)])
  const frame = (type, body) => {
    const bytes = Buffer.alloc(5 + body.length)
    bytes.writeUInt32LE(body.length + 1)
    bytes[4] = type
    body.copy(bytes, 5)
    return bytes
  }
  const files = () => {
    const one = Buffer.from(text())
    const rest = Buffer.alloc(pick([0, 0, 1, 16, 24, 32, 5000]), below(256))
    const head = Buffer.alloc(36)
    head[0] = below(22)
    head.writeUInt16LE(below(512), 2)
    head.writeUInt32LE(pick([0, 0, 1, number()]), 4)
    head.writeUInt32LE(pick([0xffffffff, number()]), 8)
    head.writeUInt32LE(pick([0xffffffff, 0xffffffff, number()]), 12)
    head.writeDoubleLE(real(), 16)
    head.writeDoubleLE(real(), 24)
    head.writeUInt32LE(pick([one.length, one.length, number()]), 32)
    return frame(11, Buffer.concat([head, one, rest]))
  }
  const host = () => {
    const parts = [Buffer.from([below(9)])]
    for (let n = below(4); n > 0; n--) {
      const value = Buffer.from(text())
      const size = Buffer.alloc(4)
      size.writeUInt32LE(pick([value.length, value.length, number()]))
      parts.push(size, value)
    }
    return frame(12, Buffer.concat(parts))
  }
  const done = () => {
    const head = Buffer.alloc(17)
    head[0] = below(6)
    head.writeDoubleLE(real(), 1)
    head.writeUInt32LE(number(), 9)
    head.writeUInt32LE(number(), 13)
    return frame(13, Buffer.concat([head, Buffer.from(text())]))
  }
  const other = () => frame(pick([0, 1, 2, 3, 10, 14, 15, 16, 99, 255]), Buffer.from(text()))
  const mutated = (bytes) => {
    const kind = below(8)
    if (kind === 0) bytes[below(bytes.length)] = below(256)
    else if (kind === 1) bytes[below(bytes.length)] ^= 1 << below(8)
    else if (kind === 2) return bytes.subarray(0, below(bytes.length))
    else if (kind === 3) bytes.writeUInt32LE(number())
    else if (kind === 4) return Buffer.concat([bytes, Buffer.alloc(below(2000), below(256))])
    else if (kind === 5) return Buffer.concat([bytes, bytes])
    return bytes
  }
  const fs = process.getBuiltinModule('fs')
  const put = (bytes) => { for (let at = 0; at < bytes.length; ) at += fs.writeSync(3, bytes, at) }
  const inbox = Buffer.alloc(65536)
  for (let n = 1 + below(5); n > 0; n--) {
    const isRight = below(3) === 0
    const bytes = pick([files, files, host, host, done, other])()
    put(isRight ? bytes : mutated(bytes))
    if (isRight && (bytes[4] === 11 || bytes[4] === 12)) fs.readSync(3, inbox)
  }
  return pick(['done', 'x'.repeat(10000)])
  `,
)
