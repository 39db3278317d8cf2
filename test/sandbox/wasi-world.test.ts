import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Exit, LimitReached } from '../../src/sandbox/box/wasi/ending.ts'
import { GuestWorld } from '../../src/sandbox/box/wasi/imports.ts'
import { HostRefusal } from '../../src/sandbox/box/rpc.ts'
import { attempt, drop, type Imports, WasiHost } from './wasi-host.ts'

const MS = 1_000_000n

let host: WasiHost

beforeEach(() => {
  host = new WasiHost()
})
afterEach(() => host[Symbol.asyncDispose]())

const call = (options?: Parameters<WasiHost['call']>[0]) => host.call(options)

describe('clocks and poll', () => {
  it('show whole milliseconds, and never go back', () => {
    const { imports } = call()
    const clock = imports['wasi:clocks/monotonic-clock']
    expect(clock.resolution()).toBe(MS)
    let last = 0n
    for (let i = 0; i < 10_000; i++) {
      const now = clock.now()
      expect(now % MS).toBe(0n)
      expect(now).toBeGreaterThanOrEqual(last)
      last = now
    }
    const wall = imports['wasi:clocks/wall-clock']
    const { seconds, nanoseconds } = wall.now()
    expect(Math.abs(Number(seconds) - Date.now() / 1000)).toBeLessThan(30)
    expect(nanoseconds % Number(MS)).toBe(0)
    expect(wall.resolution()).toEqual({ seconds: 0n, nanoseconds: Number(MS) })
  })

  it.each([0n, 1n, 300_000n, MS, 1_500_000n, 3n * MS])(
    'a timer of %d ns is never early, by the guest own clock',
    (ns) => {
      const { imports } = call()
      const clock = imports['wasi:clocks/monotonic-clock']
      for (let i = 0; i < 20; i++) {
        const before = clock.now()
        clock.subscribeDuration(ns).block()
        expect(clock.now() - before).toBeGreaterThanOrEqual(ns)
        const at = clock.now() + ns
        const timer = clock.subscribeInstant(at)
        expect([...imports['wasi:io/poll'].poll([timer])]).toEqual([0])
        expect(clock.now()).toBeGreaterThanOrEqual(at)
        expect(timer.ready()).toBe(true)
      }
    },
  )

  it.each([2n ** 31n * MS, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n])(
    'a timer of %d ns is not ready, and waits in a mix',
    (ns) => {
      const { imports } = call()
      const clock = imports['wasi:clocks/monotonic-clock']
      const { poll } = imports['wasi:io/poll']
      const long = [clock.subscribeDuration(ns), clock.subscribeInstant(clock.now() + ns)]
      for (const timer of long) expect(timer.ready()).toBe(false)
      const short = clock.subscribeDuration(2n * MS)
      expect([...poll([long[0]!, short, long[1]!])]).toEqual([1])
      const ready = imports['wasi:cli/stdout'].getStdout().subscribe()
      expect([...poll([long[0]!, ready, long[1]!, ready, short])]).toEqual([1, 3, 4])
    },
  )

  it('an instant of the past is ready at once; a poll of nothing is a trap', () => {
    const { imports } = call()
    expect(imports['wasi:clocks/monotonic-clock'].subscribeInstant(0n).ready()).toBe(true)
    expect(() => attempt(() => imports['wasi:io/poll'].poll([]))).toThrow('poll of nothing')
  })
})

describe('random', () => {
  it('gives as many bytes as asked for, up to 64 KiB, and traps beyond', () => {
    const { imports } = call()
    const { getRandomBytes, getRandomU64 } = imports['wasi:random/random']
    const { getInsecureRandomBytes, getInsecureRandomU64 } = imports['wasi:random/insecure']
    for (const count of [0n, 1n, 16n, 65_536n]) {
      expect(getRandomBytes(count)).toHaveLength(Number(count))
      expect(getInsecureRandomBytes(count)).toHaveLength(Number(count))
    }
    for (const count of [65_537n, 2n ** 31n - 1n, 2n ** 64n - 1n]) {
      expect(() => attempt(() => getRandomBytes(count))).toThrow('random bytes')
      expect(() => attempt(() => getInsecureRandomBytes(count))).toThrow('random bytes')
    }
    const numbers = new Set(Array.from({ length: 100 }, () => [getRandomU64(), getInsecureRandomU64()]).flat())
    expect(numbers.size).toBe(200)
    expect([...numbers].some((number) => number > 2n ** 63n)).toBe(true)
  })

  it('seeds every call anew', () => {
    const { world, imports } = call()
    const { insecureSeed } = imports['wasi:random/insecure-seed']
    const first = insecureSeed()
    expect(insecureSeed()).toEqual(first)
    world.end()
    world.begin({ mounts: [] })
    expect(insecureSeed()).not.toEqual(first)
  })
})

describe('command line', () => {
  it('D-04: has no environment, one fixed argument and no input', () => {
    const { imports } = call({ mounts: [] })
    expect(imports['wasi:cli/environment'].getEnvironment()).toEqual([])
    expect(imports['wasi:cli/environment'].getArguments()).toEqual(['tool'])
    expect(imports['wasi:cli/environment'].initialCwd()).toBe('/')
    expect(imports['wasi:filesystem/preopens'].getDirectories()).toEqual([])
    const stdin = imports['wasi:cli/stdin'].getStdin()
    expect(attempt(() => stdin.read(10n))).toEqual({ error: { tag: 'closed' } })
    expect(attempt(() => stdin.blockingRead(10n))).toEqual({ error: { tag: 'closed' } })
    const pollable = stdin.subscribe()
    pollable.block()
    expect(pollable.ready()).toBe(true)
  })

  it('names the grants as directories, and the workspace as where it is', () => {
    const { imports } = call({
      mounts: [
        { guest: '/workspace', workspace: 'ses/env', write: true },
        { guest: '/scratch', write: true },
      ],
      secrets: { TOKEN: 'x' },
    })
    const directories = imports['wasi:filesystem/preopens'].getDirectories()
    expect(directories.map(([, path]) => path)).toEqual(['/workspace', '/scratch', '/secrets'])
    expect(imports['wasi:cli/environment'].initialCwd()).toBe('/workspace')
    for (const [directory] of directories) {
      drop(directory)
      expect(directory.stat().type).toBe('directory')
    }
    expect(directories[2]![0].openAt({}, 'TOKEN', {}, { read: true }).read(10n, 0n)[0]).toEqual(Buffer.from('x'))
  })

  it('D-03: keeps 64 KiB of each output, drops the rest, and never makes anybody wait', () => {
    const { imports, written } = call()
    const line = Buffer.from(`${'o'.repeat(1023)}\n`)
    for (const stream of [imports['wasi:cli/stdout'].getStdout(), imports['wasi:cli/stderr'].getStderr()]) {
      for (let i = 0; i < 256; i++) {
        expect(stream.checkWrite()).toBe(65_536n)
        stream.write(line)
      }
      stream.blockingWriteAndFlush(line)
      stream.blockingFlush()
      stream.flush()
      const pollable = stream.subscribe()
      pollable.block()
      expect(pollable.ready()).toBe(true)
    }
    expect(written[1]).toBe(line.toString().repeat(64))
    expect(written[2]).toBe(written[1])
    // Another handle of the same stream has no room of its own.
    imports['wasi:cli/stdout'].getStdout().write(line)
    expect(written[1]).toHaveLength(65_536)
  })

  it('F12: exit leaves the guest by a private throw', () => {
    const { exit, exitWithCode } = call().imports['wasi:cli/exit']
    const exits: [() => void, boolean][] = [
      [() => exit({ tag: 'ok', val: undefined }), true],
      [() => exit({ tag: 'err', val: undefined }), false],
      [() => exitWithCode(0), true],
      [() => exitWithCode(3), false],
    ]
    for (const [run, success] of exits) {
      try {
        attempt(run)
        expect.unreachable()
      } catch (error) {
        expect(error).toBeInstanceOf(Exit)
        expect(error).toMatchObject({ success })
      }
    }
  })
})

describe('what is denied', () => {
  it('D-04: sockets are there, and access-denied', () => {
    const { imports } = call()
    const network = imports['wasi:sockets/instance-network'].instanceNetwork()
    const denied = { error: 'access-denied' }
    expect(attempt(() => imports['wasi:sockets/ip-name-lookup'].resolveAddresses(network, 'localhost'))).toEqual(denied)
    expect(attempt(() => imports['wasi:sockets/tcp-create-socket'].createTcpSocket('ipv4'))).toEqual(denied)
    expect(attempt(() => imports['wasi:sockets/udp-create-socket'].createUdpSocket('ipv6'))).toEqual(denied)
  })

  it('D-04: an HTTP request can be made up, and is denied', () => {
    const { imports } = call()
    const { Fields, OutgoingRequest, OutgoingBody, RequestOptions } = imports['wasi:http/types']
    const value = new Uint8Array(Buffer.from('text/plain'))
    const fields = Fields.fromList([['Content-Type', value]])
    fields.append('x-a', value)
    fields.append('X-A', value)
    expect(fields.get('x-A')).toHaveLength(2)
    fields.set('x-a', [value])
    fields.delete('CONTENT-TYPE')
    expect(fields.entries()).toEqual([['x-a', value]])
    expect(fields.has('content-type')).toBe(false)
    const copy = fields.clone()
    expect(attempt(() => fields.append('a b', value))).toEqual({ error: { tag: 'invalid-syntax' } })
    expect(attempt(() => fields.append('a', Uint8Array.of(10)))).toEqual({ error: { tag: 'invalid-syntax' } })
    const request = new OutgoingRequest(fields)
    expect(attempt(() => request.headers().append('b', value))).toEqual({ error: { tag: 'immutable' } })
    copy.append('b', value)
    request.setMethod({ tag: 'post' })
    request.setScheme({ tag: 'HTTP' })
    request.setAuthority('127.0.0.1:8080')
    request.setPathWithQuery('/x?y=1')
    expect(request.method()).toEqual({ tag: 'post' })
    expect(request.pathWithQuery()).toBe('/x?y=1')
    expect(attempt(() => request.setMethod({ tag: 'other', val: 'A B' }))).toEqual({ error: undefined })
    expect(attempt(() => request.setPathWithQuery('/a b'))).toEqual({ error: undefined })
    const body = request.body()
    expect(attempt(() => request.body())).toEqual({ error: undefined })
    const stream = body.write()
    stream.blockingWriteAndFlush(value)
    drop(stream)
    OutgoingBody.finish(body, undefined)
    const options = new RequestOptions()
    options.setConnectTimeout(5n)
    expect(options.connectTimeout()).toBe(5n)
    expect(attempt(() => imports['wasi:http/outgoing-handler'].handle(request, options))).toEqual({
      error: { tag: 'HTTP-request-denied' },
    })
  })

  it('a header section ends at 64 KiB', () => {
    const fields = new (call().imports['wasi:http/types'].Fields)()
    const kilobyte = new Uint8Array(1000).fill(97)
    for (let i = 0; i < 65; i++) fields.append('a', kilobyte)
    expect(attempt(() => fields.append('a', kilobyte))).toEqual({ error: { tag: 'forbidden' } })
  })
})

describe('limits and lifetime', () => {
  it('R10: more handles than allowed are a trap that names the limit; dropped ones do not count', () => {
    const { imports } = call({ guestHandles: 50 })
    const { getStdout } = imports['wasi:cli/stdout']
    for (let i = 0; i < 500; i++) drop(getStdout())
    const held = Array.from({ length: 49 }, () => getStdout())
    const last = held[0]!.subscribe()
    for (const make of [
      getStdout,
      () => held[0]!.subscribe(),
      () => imports['wasi:clocks/monotonic-clock'].subscribeDuration(1n),
      () => imports['wasi:filesystem/preopens'].getDirectories(),
      () => new imports['wasi:http/types'].Fields(),
      () => imports['wasi:sockets/instance-network'].instanceNetwork(),
    ]) {
      try {
        attempt(make)
        expect.unreachable()
      } catch (error) {
        expect(error).toBeInstanceOf(LimitReached)
        expect(error).toMatchObject({ code: 'handle_limit', message: expect.stringContaining('50 handles') })
        expect(error).toMatchObject({ message: expect.stringContaining('BRAIN_MAX_GUEST_HANDLES') })
      }
    }
    drop(last)
    getStdout()
  })

  it('file operations beyond the limit are a trap that names it', () => {
    const { root } = call({ fileOps: 3 })
    const directory = root()
    for (let i = 0; i < 3; i++) directory.statAt({}, '.')
    try {
      for (let i = 0; i < 3; i++) attempt(() => directory.statAt({}, 'x'))
      expect.unreachable()
    } catch (error) {
      expect(error).toMatchObject({ code: 'file_limit', message: expect.stringContaining('BRAIN_MAX_GUEST_FILE_OPS') })
    }
  })

  it('every import is a trap while there is no call', () => {
    const world = new GuestWorld(
      {
        fileRequest: () => expect.unreachable(),
        egressRequest: () => expect.unreachable(),
        hostCall: () => expect.unreachable(),
        writeOutput: () => expect.unreachable(),
      },
      { guestHandles: 10 },
    )
    const imports = world.imports as unknown as Readonly<Record<string, Readonly<Record<string, unknown>>>>
    const harmless = new Set(['filesystemErrorCode', 'networkErrorCode', 'httpErrorCode', 'poll'])
    let tried = 0
    for (const [name, members] of Object.entries(imports)) {
      for (const [member, value] of Object.entries(members)) {
        if (typeof value !== 'function' || harmless.has(member) || String(value).startsWith('class')) continue
        expect(() => (value as (...args: unknown[]) => unknown)('a', 'b'), `${name} ${member}`).toThrow('not available')
        tried++
      }
    }
    expect(tried).toBeGreaterThan(30)
  })

  it('what a call held does not work after it, nor in the next one', () => {
    const one = call()
    const root = one.root()
    const stream = root.openAt({}, 'f', { create: true }, { read: true, write: true }).appendViaStream()
    one.world.end()
    one.world.begin({ mounts: [] })
    for (const use of [
      () => root.statAt({}, 'f'),
      () => stream.write(Uint8Array.of(1)),
      () => root.readDirectory().readDirectoryEntry(),
    ])
      expect(() => attempt(use)).toThrow('is over')
  })

  it('the import object has no prototype, nor have its interfaces', () => {
    const { imports } = call()
    expect(Object.getPrototypeOf(imports)).toBeNull()
    for (const members of Object.values(imports)) {
      expect(Object.getPrototypeOf(members)).toBeNull()
      expect(Object.isFrozen(members)).toBe(true)
    }
    expect((imports as unknown as Record<string, unknown>)['constructor']).toBeUndefined()
  })
})

describe('brain:tool/host', () => {
  const hostOf = (
    hostCall: Parameters<typeof call>[0] extends infer O ? NonNullable<O> : never,
  ): Imports['brain:tool/host'] => call(hostCall).imports['brain:tool/host']

  it('passes texts on as they are, and answers sequences as numbers', () => {
    const asked: unknown[] = []
    const { emit, finish, model, telemetry } = hostOf({
      hostCall(method, texts) {
        asked.push([method, ...texts])
        return method === 'model' ? '{"text":"é"}' : '9007199254740993'
      },
    })
    expect(emit('progress', '{"x":"😀"}')).toBe(9007199254740993n)
    expect(finish(undefined)).toBe(9007199254740993n)
    expect(model('{}')).toBe('{"text":"é"}')
    expect(telemetry('{}')).toBeUndefined()
    expect(asked).toEqual([
      ['emit', 'progress', '{"x":"😀"}'],
      ['finish', undefined],
      ['model', '{}'],
      ['telemetry', '{}'],
    ])
  })

  it('gives refusals to the guest, except for telemetry, which never fails', () => {
    const refusal = { code: 'emit_limit', message: 'Cannot emit: enough', retryable: false }
    const { emit, telemetry } = hostOf({
      hostCall() {
        throw new HostRefusal(refusal)
      },
    })
    expect(attempt(() => emit('k', '{}'))).toEqual({ error: refusal })
    telemetry('{}')
  })
})
