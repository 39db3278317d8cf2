import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import type * as Types from '@bytecodealliance/preview2-shim/interfaces/wasi-filesystem-types'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { attempt, drop, WasiHost } from './wasi-host.ts'

const READ = { read: true }
const WRITE = { write: true }
const BOTH = { read: true, write: true }
const FOLLOW = { symlinkFollow: true }
const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString()
const bytes = (value: string): Uint8Array => new Uint8Array(Buffer.from(value))

let host: WasiHost

beforeEach(() => {
  host = new WasiHost()
  mkdirSync(`${host.root}/d`)
  writeFileSync(`${host.root}/a.txt`, 'hello')
})
afterEach(() => host[Symbol.asyncDispose]())

function entries(directory: Types.Descriptor): string[] {
  const stream = directory.readDirectory()
  const names: string[] = []
  for (let entry = stream.readDirectoryEntry(); entry !== undefined; entry = stream.readDirectoryEntry())
    names.push(`${entry.name}:${entry.type}`)
  drop(stream)
  return names.toSorted()
}

/** The code of a stream's failure, as `filesystem-error-code` tells it. */
function streamCode(call: ReturnType<WasiHost['call']>, run: () => unknown): unknown {
  const result = attempt(run)
  if (typeof result !== 'object' || result === null || !('error' in result)) return result
  const { tag, val } = result.error as { tag: string; val?: Types.Error }
  if (tag !== 'last-operation-failed') return tag
  expect(val!.toDebugString()).toMatch(/^[a-z-]+$/)
  return call.imports['wasi:filesystem/types'].filesystemErrorCode(val!)
}

describe('descriptors', () => {
  it('D-07: a guest gets a code for each wrong step, and goes on', () => {
    const call = host.call()
    const root = call.root()
    const codes: unknown[] = []
    const step = (run: () => unknown) => {
      const result = attempt(run)
      codes.push(typeof result === 'object' && result !== null && 'error' in result ? result.error : 'ok')
    }
    const d = root.openAt({}, 'd', { directory: true }, READ)
    writeFileSync(`${host.root}/d/x`, '')
    step(() => d.read(10n, 0n))
    step(() => d.readViaStream(0n))
    step(() => d.write(bytes('x'), 0n))
    step(() => d.writeViaStream(0n))
    step(() => d.appendViaStream())
    step(() => d.setSize(0n))
    step(() => d.syncData())
    step(() => root.openAt({}, 'a.txt', {}, WRITE).read(1n, 0n))
    step(() => root.openAt({}, 'a.txt', {}, WRITE).readViaStream(0n))
    step(() => root.openAt({}, 'a.txt', {}, READ).write(bytes('x'), 0n))
    step(() => root.openAt({}, 'a.txt', {}, READ).appendViaStream())
    step(() => root.openAt({}, 'a.txt', { directory: true }, READ))
    step(() => root.openAt({}, 'a.txt/', {}, READ))
    step(() => root.removeDirectoryAt('d'))
    step(() => root.unlinkFileAt('d'))
    step(() => root.openAt({}, 'nothing', {}, READ))
    step(() => root.openAt({}, '../x', {}, READ))
    step(() => root.linkAt({}, 'a.txt', root, 'b.txt'))
    step(() => root.symlinkAt('/etc', 'l'))
    step(() => root.openAt({}, 'a.txt', {}, READ).readDirectory())
    step(() => root.statAt({}, `${'long/'.repeat(900)}`))
    step(() => root.statAt({}, 'x'.repeat(5000)))
    expect(codes).toEqual([
      'is-directory',
      'is-directory',
      'is-directory',
      'is-directory',
      'is-directory',
      'is-directory',
      'ok',
      'bad-descriptor',
      'bad-descriptor',
      'bad-descriptor',
      'bad-descriptor',
      'not-directory',
      'not-directory',
      'not-empty',
      'is-directory',
      'no-entry',
      'not-permitted',
      'not-permitted',
      'not-permitted',
      'not-directory',
      'name-too-long',
      'name-too-long',
    ])
  })

  it('reads and writes at offsets, however wild', () => {
    const file = host.call().root().openAt({}, 'f', { create: true }, BOTH)
    expect(file.write(bytes('abc'), 2n)).toBe(3n)
    expect(file.read(100n, 0n)).toEqual([Buffer.from('\0\0abc'), true])
    expect(file.read(2n, 2n)).toEqual([Buffer.from('ab'), false])
    for (const offset of [5n, 2n ** 40n, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n])
      expect(file.read(10n, offset), `read at ${offset}`).toEqual([Buffer.alloc(0), true])
    for (const length of [2n ** 31n - 1n, 2n ** 32n, 2n ** 64n - 1n]) expect(file.read(length, 0n)[0]).toHaveLength(5)
    expect(attempt(() => file.write(bytes('x'), 2n ** 40n))).toEqual({ error: 'insufficient-space' })
    for (const offset of [2n ** 53n, 2n ** 63n, 2n ** 64n - 1n])
      expect(attempt(() => file.write(bytes('x'), offset))).toEqual({ error: 'file-too-large' })
    expect(attempt(() => file.setSize(2n ** 64n - 1n))).toEqual({ error: 'file-too-large' })
    expect(file.stat().size).toBe(5n)
  })

  it('shows size, times and kind, and of the rest what says nothing', () => {
    const root = host.call().root()
    root.setTimesAt(
      {},
      'a.txt',
      { tag: 'timestamp', val: { seconds: 11n, nanoseconds: 12 } },
      { tag: 'timestamp', val: { seconds: 13n, nanoseconds: 999_999_999 } },
    )
    expect(root.statAt({}, 'a.txt')).toEqual({
      type: 'regular-file',
      linkCount: 1n,
      size: 5n,
      dataAccessTimestamp: { seconds: 11n, nanoseconds: 12 },
      dataModificationTimestamp: { seconds: 13n, nanoseconds: 999_999_999 },
      statusChangeTimestamp: { seconds: 13n, nanoseconds: 999_999_999 },
    })
    const file = root.openAt({}, 'a.txt', {}, BOTH)
    file.setTimes({ tag: 'no-change' }, { tag: 'now' })
    const { dataAccessTimestamp, dataModificationTimestamp } = file.stat()
    expect(dataAccessTimestamp).toEqual({ seconds: 11n, nanoseconds: 12 })
    expect(Math.abs(Number(dataModificationTimestamp!.seconds) - Date.now() / 1000)).toBeLessThan(30)
    const never = { tag: 'timestamp', val: { seconds: 2n ** 63n, nanoseconds: 0 } } as const
    expect(attempt(() => file.setTimes(never, never))).toEqual({ error: 'invalid' })
    expect(
      attempt(() => file.setTimes({ tag: 'now' }, { tag: 'timestamp', val: { seconds: 1n, nanoseconds: 1e9 } })),
    ).toEqual({
      error: 'invalid',
    })
  })

  it('knows flags and kinds of what it holds', () => {
    const root = host.call().root()
    expect(root.getType()).toBe('directory')
    expect(root.getFlags()).toEqual({ read: true, mutateDirectory: true })
    const file = root.openAt({}, 'a.txt', {}, WRITE)
    expect(file.getFlags()).toEqual({ write: true })
    expect(file.getType()).toBe('regular-file')
    expect(root.openAt({}, 'a.txt', {}, {}).getFlags()).toEqual({ read: true })
  })

  it('tells whether two descriptors are one object', () => {
    const root = host.call().root()
    const one = root.openAt({}, 'a.txt', {}, READ)
    const two = root.openAt({}, 'd/../a.txt', {}, READ)
    const other = root.openAt({}, 'd', {}, READ)
    expect(one.isSameObject(two)).toBe(true)
    expect(one.isSameObject(other)).toBe(false)
    expect(one.metadataHash()).toEqual(root.metadataHashAt({}, 'a.txt'))
    expect(one.metadataHash()).not.toEqual(other.metadataHash())
  })

  it('D-02: links, renames and names of any script', () => {
    const root = host.call().root()
    root.createDirectoryAt('日本')
    drop(root.openAt({}, '日本/naïve-😀.txt', { create: true }, WRITE))
    root.symlinkAt('日本/naïve-😀.txt', 'ссылка')
    expect(root.readlinkAt('ссылка')).toBe('日本/naïve-😀.txt')
    expect(root.statAt(FOLLOW, 'ссылка').type).toBe('regular-file')
    expect(root.statAt({}, 'ссылка').type).toBe('symbolic-link')
    root.renameAt('日本/naïve-😀.txt', root, 'é')
    expect(entries(root.openAt({}, '日本', { directory: true }, READ))).toEqual([])
    expect(entries(root)).toEqual([
      'a.txt:regular-file',
      'd:directory',
      'é:regular-file',
      'ссылка:symbolic-link',
      '日本:directory',
    ])
  })

  it('lists a large directory once each, through two streams at a time', () => {
    const call = host.call()
    for (let i = 0; i < 400; i++) writeFileSync(`${host.root}/d/${`${i}-`.padEnd(200, 'n')}`, '')
    const directory = call.root().openAt({}, 'd', { directory: true }, READ)
    const [one, two] = [directory.readDirectory(), directory.readDirectory()]
    const seen = [new Set<string>(), new Set<string>()]
    for (let i = 0; i < 400; i++) {
      seen[0]!.add(one.readDirectoryEntry()!.name)
      seen[1]!.add(two.readDirectoryEntry()!.name)
    }
    expect([one.readDirectoryEntry(), two.readDirectoryEntry(), one.readDirectoryEntry()]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
    expect(seen.map((names) => names.size)).toEqual([400, 400])
    const unfinished = directory.readDirectory()
    unfinished.readDirectoryEntry()
    drop(unfinished)
    expect(call.requests.at(-1)).toBe('END_LIST')
  })

  it('a read grant writes nothing, also through streams and subdirectories', () => {
    const call = host.call({ mounts: [{ guest: '/workspace', workspace: 'ses/env', write: false }] })
    const root = call.root()
    for (const [open, flags] of [
      [{ create: true }, WRITE],
      [{}, WRITE],
      [{ truncate: true }, READ],
    ] as const)
      expect(attempt(() => root.openAt({}, 'a.txt', open, flags))).toEqual({ error: 'read-only' })
    const file = root.openAt({}, 'a.txt', {}, READ)
    expect(attempt(() => file.writeViaStream(0n))).toEqual({ error: 'bad-descriptor' })
    expect(attempt(() => file.setTimes({ tag: 'now' }, { tag: 'now' }))).toEqual({ error: 'read-only' })
    expect(readFileSync(`${host.root}/a.txt`, 'utf8')).toBe('hello')
  })
})

describe('file streams', () => {
  it('read to the end, skip, and stay closed', () => {
    const call = host.call()
    const stream = call.root().openAt({}, 'a.txt', {}, READ).readViaStream(1n)
    expect(text(stream.read(2n))).toBe('el')
    expect(stream.read(0n)).toHaveLength(0)
    expect(stream.skip(1n)).toBe(1n)
    expect(text(stream.blockingRead(2n ** 64n - 1n))).toBe('o')
    for (let i = 0; i < 3; i++) expect(streamCode(call, () => stream.read(1n))).toBe('closed')
    expect(streamCode(call, () => stream.blockingSkip(5n))).toBe('closed')
    expect(call.requests).toEqual(['OPEN', 'READ'])
  })

  it('read ahead, and find what the same call writes meanwhile', () => {
    const call = host.call()
    const file = call.root().openAt({}, 'a.txt', {}, BOTH)
    const stream = file.readViaStream(0n)
    expect(text(stream.read(1n))).toBe('h')
    file.write(bytes('EY'), 1n)
    expect(text(stream.read(1n))).toBe('E')
    const append = file.appendViaStream()
    append.write(bytes('!'))
    expect(text(stream.read(100n))).toBe('Ylo!')
    expect(streamCode(call, () => stream.read(1n))).toBe('closed')
  })

  it('cost one request for 64 KiB, then one for each 256 KiB, whatever the guest asks for', () => {
    const call = host.call()
    writeFileSync(`${host.root}/big`, Buffer.alloc(300_000, 7))
    const stream = call.root().openAt({}, 'big', {}, READ).readViaStream(0n)
    let total = 0
    for (;;) {
      const piece = attempt(() => stream.blockingRead(4096n))
      if ('error' in piece) break
      expect(piece.every((byte) => byte === 7)).toBe(true)
      total += piece.length
    }
    expect(total).toBe(300_000)
    expect(call.requests.filter((op) => op === 'READ')).toHaveLength(2)
  })

  it('write in order, and two appenders each at the end', () => {
    const call = host.call()
    const root = call.root()
    const file = root.openAt({}, 'f', { create: true }, WRITE)
    const stream = file.writeViaStream(2n)
    expect(stream.checkWrite()).toBeGreaterThanOrEqual(4096n)
    stream.blockingWriteAndFlush(bytes('ab'))
    stream.write(bytes('cd'))
    stream.writeZeroes(2n)
    stream.flush()
    stream.blockingFlush()
    expect(readFileSync(`${host.root}/f`, 'latin1')).toBe('\0\0abcd\0\0')
    const [one, two] = [file.appendViaStream(), root.openAt({}, 'f', {}, WRITE).appendViaStream()]
    for (let i = 0; i < 3; i++) {
      one.write(bytes(`a${i}`))
      two.write(bytes(`b${i}`))
    }
    two.flush()
    expect(readFileSync(`${host.root}/f`, 'latin1')).toBe('\0\0abcd\0\0a0b0a1b1a2b2')
  })

  const PIECE = new Uint8Array(4096).fill(7)
  const writes = (call: ReturnType<WasiHost['call']>) => call.requests.filter((op) => op === 'WRITE').length
  const sizeOf = (name: string) => statSync(`${host.root}/${name}`).size

  it('keep back what follows the first piece, and send it in pieces of 256 KiB', () => {
    const call = host.call()
    const stream = call.root().openAt({}, 'big', { create: true }, WRITE).writeViaStream(0n)
    for (let piece = 0; piece < 1000; piece++) stream.blockingWriteAndFlush(PIECE)
    call.world.settle()
    expect(sizeOf('big')).toBe(4_096_000)
    expect(readFileSync(`${host.root}/big`).every((byte) => byte === 7)).toBe(true)
    expect(writes(call)).toBe(1 + Math.ceil((999 * 4096) / (256 * 1024)))
  })

  it.each<[string, (call: ReturnType<WasiHost['call']>, file: Types.Descriptor) => void]>([
    ['a look at the file', (_, file) => expect(file.stat().size).toBe(8192n)],
    [
      'a read through another handle',
      (call) => expect(call.root().openAt({}, 'f', {}, READ).read(9999n, 0n)[0]).toHaveLength(8192),
    ],
    ['the drop of the file', (_, file) => drop(file)],
    ['a write through another stream', (_, file) => file.writeViaStream(8192n).write(bytes('x'))],
    ['a host call', (call) => call.imports['brain:tool/host'].finish(undefined)],
    ['telemetry', (call) => call.imports['brain:tool/host'].telemetry('{}')],
    ['waiting', (call) => call.imports['wasi:clocks/monotonic-clock'].subscribeDuration(1n).block()],
    [
      'waiting for one of many',
      (call) =>
        call.imports['wasi:io/poll'].poll([
          call.imports['wasi:clocks/monotonic-clock'].subscribeDuration(100_000_000n),
        ]),
    ],
    ['the end of the call', (call) => call.world.settle()],
  ])('send what they kept back before %s', (_, look) => {
    const call = host.call()
    const file = call.root().openAt({}, 'f', { create: true }, WRITE)
    const stream = file.writeViaStream(0n)
    stream.write(PIECE)
    stream.write(PIECE)
    expect(sizeOf('f')).toBe(4096)
    look(call, file)
    expect(sizeOf('f')).toBeGreaterThanOrEqual(8192)
  })

  it('say that bytes are lost which they kept back: to the guest, or by ending its call', () => {
    const call = host.call()
    const file = call.root().openAt({}, 'f', { create: true }, WRITE)
    const stream = file.writeViaStream(0n)
    stream.write(PIECE)
    stream.write(PIECE)
    call.broker.close()
    expect(streamCode(call, () => stream.flush())).toBe('bad-descriptor')
    expect(streamCode(call, () => stream.write(PIECE))).toBe('closed')
    call.world.settle()

    const other = host.call()
    const unaware = other.root().openAt({}, 'g', { create: true }, WRITE).writeViaStream(0n)
    unaware.write(PIECE)
    unaware.write(PIECE)
    other.broker.close()
    expect(() => other.imports['brain:tool/host'].finish('"done"')).toThrow(
      'bytes that the tool wrote to a file could not be stored: bad-descriptor',
    )
    expect(() => other.world.settle()).toThrow('could not be stored')
  })

  it('keep nothing back where the room for it is not certain', () => {
    const call = host.call({ mounts: [{ guest: '/scratch', write: true }] })
    const file = call.root().openAt({}, 'f', { create: true }, WRITE)
    file.setSize(64n * 1024n * 1024n - 10_000n)
    const stream = file.appendViaStream()
    stream.write(PIECE)
    stream.write(PIECE)
    expect(streamCode(call, () => stream.write(PIECE))).toBe('insufficient-space')
    expect(file.stat().size).toBe(64n * 1024n * 1024n - 10_000n + 8192n)
  })

  it('splice from one file to another', () => {
    const call = host.call()
    const root = call.root()
    const from = root.openAt({}, 'a.txt', {}, READ).readViaStream(0n)
    const to = root.openAt({}, 'copy', { create: true }, WRITE).writeViaStream(0n)
    expect(to.splice(from, 3n)).toBe(3n)
    expect(to.blockingSplice(from, 2n ** 40n)).toBe(2n)
    expect(streamCode(call, () => to.splice(from, 1n))).toBe('closed')
    to.flush()
    expect(readFileSync(`${host.root}/copy`, 'utf8')).toBe('hello')
  })

  it('fail with an error that knows its code, and are closed after it', () => {
    const call = host.call({ mounts: [{ guest: '/scratch', write: true }] })
    const file = call.root().openAt({}, 'f', { create: true }, WRITE)
    file.setSize(64n * 1024n * 1024n - 2n)
    const stream = file.appendViaStream()
    expect(streamCode(call, () => stream.write(bytes('abc')))).toBe('insufficient-space')
    expect(streamCode(call, () => stream.write(bytes('a')))).toBe('closed')
    expect(streamCode(call, () => stream.checkWrite())).toBe('closed')
    expect(streamCode(call, () => stream.flush())).toBe('closed')
    expect(call.imports['wasi:filesystem/types'].filesystemErrorCode({} as Types.Error)).toBeUndefined()
  })

  it('F11: a write beyond the permit is a trap of this guest', () => {
    const stream = host.call().root().openAt({}, 'f', { create: true }, WRITE).writeViaStream(0n)
    expect(() => attempt(() => stream.write(new Uint8Array(64 * 1024 + 1)))).toThrow('permit')
    expect(() => attempt(() => stream.writeZeroes(2n ** 64n - 1n))).toThrow('permit')
    expect(() => attempt(() => stream.blockingWriteZeroesAndFlush(2n ** 40n))).toThrow('permit')
  })

  it('are always ready', () => {
    const call = host.call()
    const file = call.root().openAt({}, 'a.txt', {}, BOTH)
    const pollables = [file.readViaStream(0n), file.writeViaStream(0n), file.appendViaStream()].map((s) =>
      s.subscribe(),
    )
    for (const pollable of pollables) {
      expect(pollable.ready()).toBe(true)
      pollable.block()
    }
    expect([...call.imports['wasi:io/poll'].poll(pollables)]).toEqual([0, 1, 2])
  })
})

describe('what one request teaches', () => {
  it('a stat and the identity that libc asks for with it cost one request, in either order', () => {
    const call = host.call()
    const root = call.root()
    root.statAt(FOLLOW, 'a.txt')
    root.metadataHashAt(FOLLOW, 'a.txt')
    expect(call.requests).toEqual(['STAT_AT'])
    root.metadataHashAt({}, 'a.txt')
    root.statAt(FOLLOW, 'a.txt')
    expect(call.requests).toEqual(['STAT_AT', 'STAT_AT'])
    const file = root.openAt({}, 'a.txt', {}, READ)
    file.stat()
    file.metadataHash()
    expect(call.requests).toEqual(['STAT_AT', 'STAT_AT', 'OPEN'])
  })

  it('a listing answers for its entries, by handle and by path from the mount', () => {
    const call = host.call()
    for (const name of ['x', 'y']) writeFileSync(`${host.root}/d/${name}`, name)
    symlinkSync('x', `${host.root}/d/l`)
    const root = call.root()
    const directory = root.openAt({}, 'd', { directory: true }, READ)
    expect(entries(directory)).toHaveLength(3)
    expect(directory.statAt({}, 'x').size).toBe(1n)
    directory.metadataHashAt({}, 'x')
    expect(root.statAt(FOLLOW, 'd/y').type).toBe('regular-file')
    root.metadataHashAt({}, 'd/y')
    expect(root.statAt({}, 'd/l').type).toBe('symbolic-link')
    expect(call.requests).toEqual(['OPEN', 'LIST'])
    expect(root.statAt(FOLLOW, 'd/l').type).toBe('regular-file')
    expect(call.requests).toEqual(['OPEN', 'LIST', 'STAT_AT'])
  })

  it('a second look is a fresh one, and a change makes every look fresh', () => {
    const call = host.call()
    const root = call.root()
    expect(root.statAt({}, 'a.txt').size).toBe(5n)
    writeFileSync(`${host.root}/a.txt`, 'longer text')
    expect(root.statAt({}, 'a.txt').size).toBe(11n)
    const file = root.openAt({}, 'a.txt', {}, BOTH)
    file.setSize(3n)
    expect(file.stat().size).toBe(3n)
    root.metadataHashAt({}, 'a.txt')
    file.writeViaStream(0n).write(bytes('0123456789'))
    expect(root.statAt({}, 'a.txt').size).toBe(10n)
  })

  it('a path that was renamed or replaced is not taken for what it was', () => {
    const call = host.call()
    const root = call.root()
    writeFileSync(`${host.root}/d/x`, 'old')
    const old = root.openAt({}, 'd', { directory: true }, READ)
    root.renameAt('d', root, 'e')
    root.createDirectoryAt('d')
    root.openAt({}, 'd/x', { create: true }, WRITE).write(bytes('newer'), 0n)
    expect(entries(old)).toEqual(['x:regular-file'])
    expect(root.statAt({}, 'd/x').size).toBe(5n)
    expect(old.statAt({}, 'x').size).toBe(3n)
  })

  it('a closed handle costs no request of its own', () => {
    const call = host.call()
    const root = call.root()
    for (let i = 0; i < 100; i++) {
      const file = root.openAt({}, 'a.txt', {}, READ)
      drop(file)
      drop(file)
    }
    expect(call.requests).toEqual(Array.from({ length: 100 }, () => 'OPEN'))
    const [one, two] = [root.openAt({}, 'a.txt', {}, READ), root.openAt({}, 'a.txt', {}, READ)]
    drop(one)
    drop(two)
    expect(call.requests.at(-1)).toBe('CLOSE')
  })
})
