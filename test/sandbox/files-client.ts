// Speaks to a broker as a box would, field by field, so that a test can send what no honest box sends.
import type { FileBroker } from '../../src/sandbox/supervisor/files/broker.ts'
import { FACTS, FILE_CODES, FILE_KINDS, FILE_OP, NO_HANDLE, OPEN_BIT, REQUEST } from '../../src/sandbox/wire/files.ts'

export type Fields = {
  handle?: number
  other?: number
  closing?: number
  bits?: number
  a?: number
  b?: number
  one?: string | Buffer
  two?: string | Buffer
}

export type Answer = {
  code: string
  kind: string
  value: number
  atEnd: boolean
  size: number
  mtime: [seconds: number, nanos: number]
  atime: [seconds: number, nanos: number]
  identity: string
  data: Buffer
}

export const { FOLLOW, CREATE, DIRECTORY, EXCLUSIVE, TRUNCATE, READ, WRITE, MUTATE } = OPEN_BIT

export function request(op: number, fields: Fields = {}): Buffer {
  const one = Buffer.from(fields.one ?? '')
  const head = Buffer.alloc(REQUEST.HEAD)
  head[REQUEST.OP] = op
  head.writeUInt16LE(fields.bits ?? 0, REQUEST.BITS)
  head.writeUInt32LE(fields.handle ?? 0, REQUEST.HANDLE)
  head.writeUInt32LE(fields.other ?? NO_HANDLE, REQUEST.OTHER)
  head.writeUInt32LE(fields.closing ?? NO_HANDLE, REQUEST.CLOSING)
  head.writeDoubleLE(fields.a ?? 0, REQUEST.A)
  head.writeDoubleLE(fields.b ?? 0, REQUEST.B)
  head.writeUInt32LE(one.length, REQUEST.ONE_LENGTH)
  return Buffer.concat([head, one, Buffer.from(fields.two ?? '')])
}

export function read(reply: Buffer): Answer {
  return {
    code: FILE_CODES[reply[FACTS.STATUS]!] ?? `status ${reply[FACTS.STATUS]}`,
    kind: FILE_KINDS[reply[FACTS.KIND]!]!,
    value: reply.readUInt32LE(FACTS.VALUE),
    atEnd: reply.readUInt16LE(FACTS.EXTRA) === 1,
    size: reply.readDoubleLE(FACTS.SIZE),
    mtime: [reply.readDoubleLE(FACTS.MTIME_SECONDS), reply.readUInt32LE(FACTS.MTIME_NANOS)],
    atime: [reply.readDoubleLE(FACTS.ATIME_SECONDS), reply.readUInt32LE(FACTS.ATIME_NANOS)],
    identity: reply.subarray(FACTS.IDENTITY, FACTS.HEAD).toString('hex'),
    data: reply.subarray(FACTS.HEAD),
  }
}

export type Op = keyof typeof FILE_OP

/** A broker's requests by name. */
export function clientOf(broker: FileBroker) {
  const ask = (op: Op | number, fields?: Fields): Answer =>
    read(Buffer.concat(broker.answer(request(typeof op === 'number' ? op : FILE_OP[op], fields))))
  const must = (op: Op, fields?: Fields): Answer => {
    const answer = ask(op, fields)
    if (answer.code !== 'ok') throw new Error(`${op} ${JSON.stringify(fields?.one ?? '')}: ${answer.code}`)
    return answer
  }
  const names = (handle = 0): string[] => {
    const found: string[] = []
    for (let other = NO_HANDLE; ;) {
      const page = must('LIST', { handle, other })
      for (let at = 0; at < page.data.length;) {
        const length = page.data.readUInt16LE(at + FACTS.EXTRA)
        at += FACTS.HEAD
        found.push(page.data.toString('utf8', at, at + length))
        at += length
      }
      if (page.atEnd) return found
      other = page.value
    }
  }
  return { ask, must, names }
}

/** The kernel's two timespecs: access, modification. */
export function timespecs(...pairs: [seconds: bigint, nanos: bigint][]): Buffer {
  const bytes = Buffer.alloc(pairs.length * 16)
  for (const [index, [seconds, nanos]] of pairs.entries()) {
    bytes.writeBigInt64LE(seconds, index * 16)
    bytes.writeBigInt64LE(nanos, index * 16 + 8)
  }
  return bytes
}
