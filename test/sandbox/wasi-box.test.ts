// A few of the promises of our WASI once more through real boxes: supervisor, launcher, frames and all.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Mount } from '../../src/sandbox/sandbox.ts'
import { type CallOptions, type Ended, type Lab, openLab, scripted, until } from './lab.ts'

const WORKSPACE: Mount = { guest: '/workspace', workspace: 'ses_1/main', write: true }

/** What every script begins with: jco's rule for errors, and shorthands. */
const PRELUDE = `
  const types = imports['wasi:filesystem/types'], cli = imports['wasi:cli/stdout']
  const directories = imports['wasi:filesystem/preopens'].getDirectories()
  const root = directories[0]?.[0]
  const attempt = (run) => { try { return run() ?? 'done' } catch (e) { if (e instanceof Error && !Object.hasOwn(e, 'payload')) throw e; return { error: e.payload?.tag ?? e.payload } } }
  const bytes = (text) => new Uint8Array(Buffer.from(text))
  const text = (bytes) => Buffer.from(bytes).toString()
`

let lab: Lab

beforeAll(async () => {
  lab = await openLab()
  mkdirSync(`${lab.data}/native-workspaces/ses_1/main`, { recursive: true })
  writeFileSync(`${lab.data}/native-workspaces/ses_1/main/a.txt`, 'hello')
})
afterAll(() => lab[Symbol.asyncDispose]())

const run = (body: string, options: CallOptions = {}, where = lab): Promise<Ended> =>
  where.call(where.plant(scripted(`${PRELUDE}\n${body}`)), { mounts: [WORKSPACE], ...options })

async function resultOf(body: string, options?: CallOptions): Promise<unknown> {
  const { end } = await run(`return JSON.stringify((() => { ${body} })())`, options)
  if (end.type !== 'returned') throw new Error(JSON.stringify(end))
  return JSON.parse(end.text)
}

it('files are read, written and listed over the channel', async () => {
  const result = await resultOf(`
    const file = root.openAt({}, 'naïve-😀.txt', { create: true }, { read: true, write: true })
    file.writeViaStream(0n).blockingWriteAndFlush(bytes('你好'))
    const big = root.openAt({}, 'big', { create: true }, { read: true, write: true })
    const stream = big.writeViaStream(0n)
    for (let i = 0; i < 20; i++) stream.write(new Uint8Array(60_000).fill(i))
    const [piece, end] = big.read(2n ** 40n, 0n)
    const list = root.readDirectory(), names = []
    for (let e; (e = list.readDirectoryEntry()); ) names.push(e.name)
    return [text(file.read(100n, 0n)[0]), piece.length, end, piece[59_999], piece[60_000], Number(big.stat().size), names.sort()]
  `)
  expect(result).toEqual(['你好', 1024 * 1024 - 16 * 1024, false, 0, 1, 1_200_000, ['a.txt', 'big', 'naïve-😀.txt']])
})

it('D-04: without grants there is nothing to reach, and the call goes on', async () => {
  const result = await resultOf(
    `
    const network = imports['wasi:sockets/instance-network'].instanceNetwork()
    const http = imports['wasi:http/types']
    return [
      directories, imports['wasi:cli/environment'].getEnvironment(), imports['wasi:cli/environment'].getArguments(),
      attempt(() => imports['wasi:sockets/ip-name-lookup'].resolveAddresses(network, 'localhost')),
      attempt(() => imports['wasi:sockets/tcp-create-socket'].createTcpSocket('ipv4')),
      attempt(() => imports['wasi:http/outgoing-handler'].handle(new http.OutgoingRequest(new http.Fields()), undefined)),
    ]`,
    { mounts: [] },
  )
  expect(result).toEqual([
    [],
    [],
    ['tool'],
    { error: 'access-denied' },
    { error: 'access-denied' },
    { error: 'HTTP-request-denied' },
  ])
})

it('D-03: output beyond what is kept holds up nobody, five at a time', async () => {
  const body = `
    for (const stream of [cli.getStdout(), imports['wasi:cli/stderr'].getStderr()]) {
      for (let i = 0; i < 256; i++) { stream.checkWrite(); stream.write(bytes('x'.repeat(1023) + '\\n')) }
      stream.blockingFlush()
      stream.subscribe().block()
    }
    return '{"done":true}'`
  const started = performance.now()
  const component = lab.plant(scripted(`${PRELUDE}\n${body}`))
  const ended = await Promise.all(Array.from({ length: 5 }, () => lab.call(component)))
  expect(performance.now() - started).toBeLessThan(5000 * 4) // the machine may be busy with other tests
  for (const { end, facts } of ended) {
    expect(end).toEqual({ type: 'returned', text: '{"done":true}' })
    expect(facts.stdout).toHaveLength(65_536)
    expect(facts.stderr).toHaveLength(65_536)
  }
})

it('scratch and secrets exist for one call', async () => {
  const options = { mounts: [WORKSPACE, { guest: '/scratch', write: true } as const], secrets: { TOKEN: 'gehéim' } }
  const body = `
    const [, scratch, secrets] = directories.map(([directory]) => directory)
    const before = attempt(() => scratch.statAt({}, 'left').type)
    scratch.openAt({}, 'left', { create: true }, { write: true })
    const token = secrets.openAt({}, 'TOKEN', {}, { read: true }).read(99n, 0n)[0]
    return [directories.map(([, path]) => path), before, text(token), attempt(() => secrets.unlinkFileAt('TOKEN'))]`
  for (let i = 0; i < 2; i++)
    expect(await resultOf(body, options)).toEqual([
      ['/workspace', '/scratch', '/secrets'],
      { error: 'no-entry' },
      'gehéim',
      { error: 'read-only' },
    ])
  // The end of a call is told before its files are put away.
  await until(() => readdirSync(`${lab.data}/scratch`).length === 0, 'no scratch directory')
})

it('exit, the handle limit and the operation limit end a call by their names', async () => {
  await using small = await openLab({ guestHandles: 20, guestFileOps: 50 })
  const end = async (body: string) => (await run(body, {}, small)).end
  expect(await end(`imports['wasi:cli/exit'].exit({ tag: 'err' })`)).toMatchObject({ type: 'trapped' })
  expect(await end(`for (;;) cli.getStdout()`)).toMatchObject({
    type: 'trapped',
    code: 'handle_limit',
    message: expect.stringContaining('BRAIN_MAX_GUEST_HANDLES'),
  })
  expect(await end(`for (;;) attempt(() => root.statAt({}, 'no'))`)).toMatchObject({
    type: 'trapped',
    code: 'file_limit',
    message: expect.stringContaining('BRAIN_MAX_GUEST_FILE_OPS'),
  })
  expect(await end(`return '"still here"'`)).toEqual({ type: 'returned', text: '"still here"' })
})

it('imports are traps while an instance is made, and handles of a call do not outlive it', async () => {
  const js = scripted(
    `const out = [globalThis.early]
     const kept = globalThis.kept
     globalThis.kept = imports['wasi:filesystem/preopens'].getDirectories()[0][0]
     try { kept?.statAt({}, 'a.txt'); out.push(kept === undefined ? 'first' : 'alive') } catch (e) { out.push(e.message) }
     return JSON.stringify(out)`,
    `try { imports['wasi:clocks/monotonic-clock'].now(); globalThis.early = 'open' } catch (e) { globalThis.early = e.message }`,
  )
  const component = lab.plant(js)
  const texts: unknown[] = []
  for (let i = 0; i < 2; i++) {
    const { end } = await lab.call(component, { mounts: [WORKSPACE] })
    texts.push(end.type === 'returned' ? JSON.parse(end.text) : end)
  }
  const early = 'host imports are not available while an instance is made'
  expect(texts).toEqual([
    [early, 'first'],
    [early, 'the invocation of this handle is over'],
  ])
})

it('the application sees what tools write, and they what it writes', async () => {
  const { files } = lab.sandbox
  await files.write(
    'ses_1/main',
    'from/app.txt',
    (async function* () {
      yield Buffer.from('app')
    })(),
  )
  expect(await resultOf(`return text(root.openAt({}, 'from/app.txt', {}, { read: true }).read(9n, 0n)[0])`)).toBe('app')
  await resultOf(
    `root.openAt({}, 'from/tool.txt', { create: true }, { write: true }).write(bytes('tool'), 0n)`.concat(`; return 1`),
  )
  const { size, body } = await files.read('ses_1/main', 'from/tool.txt')
  let content = ''
  for await (const piece of body) content += Buffer.from(piece).toString()
  expect([size, content]).toEqual([4, 'tool'])
  const list = await files.list('ses_1/main', { prefix: 'from/', after: '', limit: 10 })
  expect(list.map(({ path }) => path)).toEqual(['from/app.txt', 'from/tool.txt'])
  expect(readFileSync(`${lab.data}/native-workspaces/ses_1/main/from/app.txt`, 'utf8')).toBe('app')
  await files.remove('ses_1/main', 'from/app.txt')
  await expect(files.read('ses_1/main', 'from/app.txt')).rejects.toMatchObject({ code: 'not_found' })
})

it('D-02: a guest string keeps its first character, and malformed UTF-8 is a trap', async () => {
  const decode = `new TextDecoder().decode(Uint8Array.of(0xef, 0xbb, 0xbf, 0x61))`
  expect(await resultOf(`return ${decode}`)).toBe('\ufeffa')
  const { end } = await run(`return new TextDecoder().decode(Uint8Array.of(0x61, 0xff))`)
  expect(end).toMatchObject({ type: 'trapped' })
})
