import { scripted } from './lab.ts'

/**
 * A guest that speaks to the supervisor past the runtime, and wrongly: frames of every type, most with a body that is
 * odd or changed, some whose framing is: cut, joined, sent twice or out of turn. Its input is a seed: `{"seed":1}` always
 * sends the same bytes.
 *
 * A box that keeps the framing and waits for its answers lives on, and starting the next one is a hundred times the cost of
 * a case. So the framing is broken in one frame of twenty, and then the box is done with.
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
  const egress = () => {
    const op = pick([1, 1, 1, 2, 3, 4, 5, 6, 7, 8 + below(248)])
    const head = Buffer.alloc(op === 1 ? 21 : op === 5 ? 6 : op === 6 ? 9 + 5 * below(4) : 5, below(2) * below(256))
    head[0] = op
    // What is waited for without end is waited for until the deadline: that is tried elsewhere.
    if (op === 6) head.writeDoubleLE(pick([0, 1, -1, NaN]), 1)
    else head.writeUInt32LE(pick([0, 0, 1, number()]), 1)
    if (op === 5) head[5] = below(2)
    if (op !== 1) return frame(16, op === 2 ? Buffer.concat([head, Buffer.from(text())]) : head)
    head.writeDoubleLE(pick([0, 0, -1, real()]), 13)
    const parts = [head]
    for (const part of [pick(['GET', text()]), pick(['http', text()]), pick(['127.0.0.1:1', text()]), text(), text(), text()]) {
      const size = Buffer.alloc(4)
      size.writeUInt32LE(part.length)
      parts.push(size, Buffer.from(part))
    }
    return frame(16, Buffer.concat(parts))
  }
  const other = () => frame(pick([0, 1, 2, 3, 10, 14, 15, 99, 255]), Buffer.from(text()))
  const mutated = (bytes) => {
    const kind = below(6)
    if (kind === 0) bytes[below(5)] = below(256)
    else if (kind === 1) return bytes.subarray(0, below(bytes.length))
    else if (kind === 2) bytes.writeUInt32LE(number())
    else if (kind === 3) return Buffer.concat([bytes, Buffer.alloc(1 + below(2000), below(256))])
    else if (kind === 4) return Buffer.concat([bytes, bytes])
    else bytes[below(Math.min(bytes.length, 60))] ^= 1 << below(8)
    return bytes
  }
  const odd = (bytes) => {
    for (let n = below(3); n > 0 && bytes.length > 5; n--) {
      const at = 5 + below(Math.min(bytes.length - 5, 21))
      bytes[at] = pick([below(256), bytes[at] ^ (1 << below(8)), 0, 255])
    }
    return bytes
  }
  const fs = process.getBuiltinModule('fs')
  const put = (bytes) => { for (let at = 0; at < bytes.length; ) at += fs.writeSync(3, bytes, at) }
  const exactly = (size) => {
    const bytes = Buffer.alloc(size)
    for (let at = 0; at < size; ) {
      const count = fs.readSync(3, bytes, at, size - at)
      if (count === 0) process.exit()
      at += count
    }
    return bytes
  }
  for (let n = 1 + below(8); n > 0; n--) {
    if (below(20) > 0) {
      put(odd(pick([files, files, host, egress])()))
      exactly(exactly(4).readUInt32LE())
      continue
    }
    const bytes = pick([() => mutated(files()), () => mutated(host()), () => mutated(egress()), done, other])()
    put(bytes)
    // A frame that says it is longer is made so long, or the supervisor waits for the rest until the deadline.
    const missing = bytes.length < 4 ? 0 : bytes.readUInt32LE() + 4 - bytes.length
    if (missing > 0 && missing < 2 ** 21) put(Buffer.alloc(missing, below(256)))
    break
  }
  return pick(['done', 'x'.repeat(10000)])
  `,
)
