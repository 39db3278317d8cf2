// Our WASI and preview2-shim's Node build, step by step on equal directories. The shim is the reference: every difference
// is in the table below, with its reason, and a difference that is in the table but does not show is an error as well.
import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WASIShim } from '@bytecodealliance/preview2-shim/instantiation'
import type * as Types from '@bytecodealliance/preview2-shim/interfaces/wasi-filesystem-types'
import { afterAll, expect, it } from 'vitest'
import { drop, type Imports, WasiHost } from './wasi-host.ts'

const READ = { read: true }
const WRITE = { write: true }
const BOTH = { read: true, write: true }
const CREATE = { create: true }
const FOLLOW = { symlinkFollow: true }
const bytes = (value: string): Uint8Array => new Uint8Array(Buffer.from(value))

type Context = { readonly imports: Imports; readonly root: Types.Descriptor }
type Step = (context: Context) => unknown

const file = ({ root }: Context, flags = BOTH, path = 'a.txt') => root.openAt({}, path, {}, flags)
const opened = (step: () => Types.Descriptor) => {
  const descriptor = step()
  const type = descriptor.getType()
  drop(descriptor)
  return type
}
const readAll = (stream: ReturnType<Types.Descriptor['readViaStream']>) => {
  let all = ''
  for (;;) {
    try {
      all += Buffer.from(stream.blockingRead(3n)).toString()
    } catch (error) {
      return [all, tagOf(error)]
    }
  }
}
const tagOf = (error: unknown): unknown => {
  const payload = payloadOf(error)
  return typeof payload === 'object' && payload !== null && 'tag' in payload ? payload.tag : payload
}
const names = (directory: Types.Descriptor) => {
  const stream = directory.readDirectory()
  const found: string[] = []
  for (let entry = stream.readDirectoryEntry(); entry !== undefined; entry = stream.readDirectoryEntry())
    found.push(`${entry.name}:${entry.type}`)
  return found.toSorted()
}

/** In this order, on one directory. */
const STEPS = {
  'open a file': ({ root }) => opened(() => root.openAt({}, 'a.txt', {}, READ)),
  'open a directory': ({ root }) => opened(() => root.openAt({}, 'd', { directory: true }, READ)),
  'open a directory as a file': ({ root }) => opened(() => root.openAt({}, 'd', {}, READ)),
  'open a directory to write': ({ root }) => opened(() => root.openAt({}, 'd', {}, WRITE)),
  'open a file as a directory': ({ root }) => opened(() => root.openAt({}, 'a.txt', { directory: true }, READ)),
  'open with a slash': ({ root }) => opened(() => root.openAt({}, 'a.txt/', {}, READ)),
  'open what is missing': ({ root }) => opened(() => root.openAt({}, 'no', {}, READ)),
  'open beneath a file': ({ root }) => opened(() => root.openAt({}, 'a.txt/x', {}, READ)),
  'open exclusively what is there': ({ root }) =>
    opened(() => root.openAt({}, 'a.txt', { create: true, exclusive: true }, WRITE)),
  'open nothing': ({ root }) => opened(() => root.openAt({}, '', {}, READ)),
  'open out of the directory': ({ root }) => opened(() => root.openAt({}, '../x', {}, READ)),
  'open a way round': ({ root }) => opened(() => root.openAt({}, 'd/../a.txt', {}, READ)),
  'open an absolute path': ({ root }) => opened(() => root.openAt({}, '/etc/passwd', {}, READ)),
  'open with a backslash': ({ root }) => opened(() => root.openAt({}, 'a\\b', CREATE, WRITE)),
  'open a long name': ({ root }) => opened(() => root.openAt({}, 'n'.repeat(256), CREATE, WRITE)),
  'follow a link': ({ root }) => opened(() => root.openAt(FOLLOW, 'link', {}, READ)),
  'do not follow a link': ({ root }) => opened(() => root.openAt({}, 'link', {}, READ)),
  'follow a link that leads out': ({ root }) => opened(() => root.openAt(FOLLOW, 'out', {}, READ)),
  'follow an absolute link': ({ root }) => opened(() => root.openAt(FOLLOW, 'absolute', {}, READ)),
  'open a file with two names': ({ root }) => opened(() => root.openAt({}, 'twin', {}, READ)),
  'flags of a file': (context) => file(context, WRITE as typeof BOTH).getFlags().write,
  'kind of a file': (context) => file(context).getType(),
  'stat of a file': ({ root }) => {
    const { type, size } = root.statAt({}, 'a.txt')
    return [type, size]
  },
  'stat of a link': ({ root }) => root.statAt({}, 'link').type,
  'stat through a link': ({ root }) => root.statAt(FOLLOW, 'link').type,
  'size of a directory': ({ root }) => root.statAt({}, 'd').size,
  'links of a directory': ({ root }) => root.statAt({}, 'd').linkCount,
  'read a file': (context) => {
    const [data, end] = file(context).read(100n, 1n)
    return [Buffer.from(data).toString(), end]
  },
  'read part of a file': (context) => {
    const [data, end] = file(context).read(2n, 1n)
    return [Buffer.from(data).toString(), end]
  },
  'read past the end': (context) => Buffer.from(file(context).read(2n, 100n)[0]).toString(),
  'read a directory': ({ root }) => root.openAt({}, 'd', {}, READ).read(1n, 0n)[0].length,
  'read what is only written': (context) => file(context, WRITE as typeof BOTH).read(1n, 0n)[0].length,
  'write what is only read': (context) => file(context, READ as typeof BOTH).write(bytes('x'), 0n),
  'stream a file': (context) => readAll(file(context).readViaStream(0n)),
  'stream from an offset': (context) => readAll(file(context).readViaStream(3n)),
  'stream from past the end': (context) => readAll(file(context).readViaStream(30n)),
  'skip in a stream': (context) => {
    const stream = file(context).readViaStream(0n)
    return [stream.blockingSkip(2n), readAll(stream)]
  },
  'stream a directory': ({ root }) => readAll(root.openAt({}, 'd', {}, READ).readViaStream(0n)),
  'write at an offset': ({ root }) => {
    const made = root.openAt({}, 'w', CREATE, BOTH)
    return [made.write(bytes('abc'), 2n), Buffer.from(made.read(10n, 0n)[0]).toString('latin1')]
  },
  'write a stream': ({ root }) => {
    const stream = root.openAt({}, 'w', { truncate: true }, BOTH).writeViaStream(1n)
    stream.blockingWriteAndFlush(bytes('one'))
    stream.blockingWriteAndFlush(bytes('two'))
    drop(stream)
    return Buffer.from(root.openAt({}, 'w', {}, READ).read(10n, 0n)[0]).toString('latin1')
  },
  'append with two streams': ({ root }) => {
    const made = root.openAt({}, 'log', CREATE, BOTH)
    const streams = [made.appendViaStream(), root.openAt({}, 'log', {}, WRITE).appendViaStream()]
    for (const word of ['a', 'b', 'c']) for (const stream of streams) stream.blockingWriteAndFlush(bytes(word))
    return Buffer.from(made.read(10n, 0n)[0]).toString('latin1')
  },
  'shorten a file': ({ root }) => {
    const made = root.openAt({}, 'log', {}, BOTH)
    made.setSize(2n)
    return made.stat().size
  },
  'resize what is only read': ({ root }) => root.openAt({}, 'log', {}, READ).setSize(1n),
  'sync a file': (context) => file(context).sync(),
  'sync a directory': ({ root }) => root.openAt({}, 'd', {}, READ).syncData(),
  'set times': ({ root }) => {
    const at = (seconds: bigint, nanoseconds: number) => ({ tag: 'timestamp', val: { seconds, nanoseconds } }) as const
    root.setTimesAt({}, 'log', at(11n, 0), at(13n, 500_000_000))
    const { dataAccessTimestamp, dataModificationTimestamp } = root.statAt({}, 'log')
    return [dataAccessTimestamp, dataModificationTimestamp]
  },
  'make a directory': ({ root }) => root.createDirectoryAt('d/e'),
  'make a directory twice': ({ root }) => root.createDirectoryAt('d/e'),
  'make a directory in nothing': ({ root }) => root.createDirectoryAt('no/e'),
  'remove a full directory': ({ root }) => root.removeDirectoryAt('d'),
  'remove a file as a directory': ({ root }) => root.removeDirectoryAt('a.txt'),
  'remove the directory itself': ({ root }) => root.openAt({}, 'd/e', { directory: true }, READ).removeDirectoryAt('.'),
  'unlink a directory': ({ root }) => root.unlinkFileAt('d'),
  'unlink what is missing': ({ root }) => root.unlinkFileAt('no'),
  'unlink with a slash': ({ root }) => root.unlinkFileAt('a.txt/'),
  'rename over a file': ({ root }) => {
    root.renameAt('w', root, 'log')
    return names(root.openAt({}, '.', { directory: true }, READ)).filter((name) => /^(w|log):/.test(name))
  },
  'rename what is missing': ({ root }) => root.renameAt('no', root, 'x'),
  'rename into itself': ({ root }) => root.renameAt('d', root, 'd/x'),
  'make a link': ({ root }) => root.symlinkAt('a.txt', 'made'),
  'make a link twice': ({ root }) => root.symlinkAt('a.txt', 'made'),
  'make an absolute link': ({ root }) => root.symlinkAt('/etc', 'made2'),
  'read a link': ({ root }) => root.readlinkAt('made'),
  'read a file as a link': ({ root }) => root.readlinkAt('a.txt'),
  'read an absolute link': ({ root }) => root.readlinkAt('absolute'),
  'make a second name': ({ root }) => root.linkAt({}, 'a.txt', root, 'second'),
  'list a directory': ({ root }) => names(root.openAt({}, 'd', { directory: true }, READ)),
  'list a file': (context) => names(file(context)),
  'same object': (context) => file(context).isSameObject(file(context)),
  'other object': (context) => file(context).isSameObject(context.root),
  'hashes of one file': ({ root }) => {
    const [one, two] = [root.metadataHashAt({}, 'a.txt'), root.metadataHashAt({}, 'a.txt')]
    return one.lower === two.lower && one.upper === two.upper
  },
  'ready streams': (context) => {
    const { imports } = context
    const pollable = file(context).readViaStream(0n).subscribe()
    return [
      ...imports['wasi:io/poll'].poll([imports['wasi:clocks/monotonic-clock'].subscribeDuration(10n ** 14n), pollable]),
    ]
  },
  'a timer': ({ imports }) =>
    imports['wasi:io/poll'].poll([imports['wasi:clocks/monotonic-clock'].subscribeDuration(10n ** 6n)]).length,
  'poll of nothing': ({ imports }) => imports['wasi:io/poll'].poll([]).length,
  'random bytes': ({ imports }) => imports['wasi:random/random'].getRandomBytes(10n).length,
  'many random bytes': ({ imports }) => imports['wasi:random/random'].getRandomBytes(65_537n).length,
  environment: ({ imports }) => imports['wasi:cli/environment'].getEnvironment(),
  arguments: ({ imports }) => imports['wasi:cli/environment'].getArguments(),
  'first directory': ({ imports }) => imports['wasi:cli/environment'].initialCwd() === process.cwd(),
  'a socket': ({ imports }) => typeof imports['wasi:sockets/tcp-create-socket'].createTcpSocket('ipv4'),
  'resolve a name': ({ imports }) => {
    const network = imports['wasi:sockets/instance-network'].instanceNetwork()
    return typeof imports['wasi:sockets/ip-name-lookup'].resolveAddresses(network, 'localhost')
  },
} satisfies Record<string, Step>

type Difference = { readonly ours: unknown; readonly shim: unknown; readonly why: string }
const error = (code: unknown) => ({ error: code })
const trap = { trap: true }

const DIFFERENCES: Partial<Record<keyof typeof STEPS, Difference>> = {
  'open nothing': {
    ours: error('no-entry'),
    shim: 'directory',
    why: 'POSIX: an empty path names nothing. The shim takes it for the directory itself.',
  },
  'open with a backslash': {
    ours: error('invalid'),
    shim: error('no-entry'),
    why: 'Both refuse it; ours says that it is the name and not the place.',
  },
  'open a file with two names': {
    ours: error('not-permitted'),
    shim: 'regular-file',
    why: 'The other name may be outside (sandbox.md F5).',
  },
  'size of a directory': { ours: 0n, shim: 4096n, why: 'What a directory takes on the disk is not for guests (F20).' },
  'links of a directory': { ours: 1n, shim: 2n, why: 'Link counts are not for guests (F20).' },
  'read a file': {
    ours: ['ello', true],
    shim: ['ello', false],
    why: 'WASI: "true indicates that the end of the file was reached". The shim says it one read later.',
  },
  'read a directory': {
    ours: error('is-directory'),
    shim: trap,
    why: 'A file error is never a trap (cases D-07).',
  },
  'read what is only written': { ours: error('bad-descriptor'), shim: trap, why: 'As above.' },
  'write what is only read': { ours: error('bad-descriptor'), shim: trap, why: 'As above.' },
  'skip in a stream': {
    ours: [2n, ['llo', 'closed']],
    shim: [bytes('hello'), ['', 'closed']],
    why: 'WASI: skip answers a number. The shim answers bytes, and skips all of them.',
  },
  'stream a directory': {
    ours: error('is-directory'),
    shim: ['', 'last-operation-failed'],
    why: 'Ours fails when the stream is asked for, the shim at the first read; WASI allows both.',
  },
  'append with two streams': {
    ours: 'aabbcc',
    shim: 'abc',
    why: 'WASI: like O_APPEND. The shim takes the offset once, so that two appenders overwrite each other.',
  },
  'remove the directory itself': {
    ours: error('invalid'),
    shim: 'done',
    why: 'POSIX: EINVAL. The shim removes the directory behind the descriptor (sandbox.md F22).',
  },
  'read an absolute link': {
    ours: error('not-permitted'),
    shim: '/etc/hostname',
    why: 'WASI: "If the contents contain an absolute path, this function fails with not-permitted".',
  },
  'make a second name': {
    ours: error('not-permitted'),
    shim: 'done',
    why: 'Two names would be counted twice or never, and a file with two is not opened (F5).',
  },
  'list a directory': {
    ours: ['e:directory', 'x:regular-file'],
    shim: ['x:regular-file'],
    why: 'The shim removed "e" above.',
  },
  'same object': { ours: true, shim: false, why: 'The shim compares the two JavaScript objects.' },
  'many random bytes': { ours: trap, shim: 65_537, why: 'At most 64 KiB a call (F10).' },
  'first directory': { ours: false, shim: true, why: 'The working directory of the host is not for guests.' },
  'a socket': {
    ours: error('access-denied'),
    shim: 'object',
    why: 'No socket is made that could only be denied later.',
  },
  'resolve a name': {
    ours: error('access-denied'),
    shim: error('permanent-resolver-failure'),
    why: 'The guest shall know that it was denied, and not look for a fault of the network.',
  },
}

function payloadOf(thrown: unknown): unknown {
  if (typeof thrown === 'object' && thrown !== null && Object.hasOwn(thrown, 'payload'))
    return (thrown as { payload: unknown }).payload
  return thrown
}

/** What a guest would see of a step. */
function outcome(step: Step, context: Context): unknown {
  try {
    return step(context) ?? 'done'
  } catch (thrown) {
    const payload = payloadOf(thrown)
    return payload instanceof Error ? trap : error(tagOf(thrown))
  }
}

function furnish(directory: string, outside: string): void {
  mkdirSync(`${directory}/d`, { recursive: true })
  writeFileSync(`${directory}/a.txt`, 'hello')
  writeFileSync(`${directory}/d/x`, '')
  symlinkSync('a.txt', `${directory}/link`)
  symlinkSync('../../../../../outside', `${directory}/out`)
  symlinkSync('/etc/hostname', `${directory}/absolute`)
  linkSync(outside, `${directory}/twin`)
}

const base = mkdtempSync(join(tmpdir(), 'brain-reference-'))
writeFileSync(`${base}/outside`, 'HOST')
const host = new WasiHost()
furnish(host.root, `${base}/outside`)
furnish(`${base}/shim`, `${base}/outside`)
const ours = host.call()
const shim = new WASIShim({
  sandbox: { preopens: { '/workspace': `${base}/shim` }, env: {}, args: ['tool'], enableNetwork: false },
}).getImportObject() as unknown as Imports

const contexts = {
  ours: { imports: ours.imports, root: ours.root() },
  shim: { imports: shim, root: shim['wasi:filesystem/preopens'].getDirectories()[0]![0] },
}

afterAll(async () => {
  await host[Symbol.asyncDispose]()
  rmSync(base, { recursive: true })
})

it.each(Object.entries(STEPS))('%s', (name, step) => {
  const seen = { ours: outcome(step, contexts.ours), shim: outcome(step, contexts.shim) }
  const difference = DIFFERENCES[name as keyof typeof STEPS]
  if (difference === undefined) expect(seen.ours).toEqual(seen.shim)
  else {
    expect(seen).toEqual({ ours: difference.ours, shim: difference.shim })
    expect(seen.ours).not.toEqual(seen.shim)
  }
})
