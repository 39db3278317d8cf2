import { once } from 'node:events'
import { readFile, mkdtemp, rm, symlink, writeFile, readdir } from 'node:fs/promises'
import { createServer, request, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sandboxComponent } from '../fixtures/components.ts'
import { freePort } from '../docs/page-shell.ts'
import { ExampleService } from '../support/example-service.ts'
import { startServer, TestSession, type TestServer } from '../support/server.ts'

const KEY = 'key-of-the-tools'
/** The binding that the seed writes out, as it stands there. */
const SEED_BINDING = {
  name: 'echo',
  description: 'Echo text through an external tool service.',
  input_schema: {
    type: 'object',
    properties: { text: { type: 'string', maxLength: 4096 } },
    required: ['text'],
    additionalProperties: false,
  },
  url: 'http://127.0.0.1:8081/tools/echo',
  token_env: 'BRAIN_TOOLS_KEY',
  tenants: ['local'],
  timeout_seconds: 300,
  max_output_bytes: 1048576,
}

type Binding = { readonly name: string; readonly url: string }
type ServiceName = 'tools' | 'sandbox' | 'storage'

const program = (service: string): string[] => [process.execPath, `examples/${service}/server.mjs`]
async function bindingsOf(service: ServiceName): Promise<Binding[]> {
  const text = await readFile(join(import.meta.dirname, `../../examples/${service}/bindings.json`), 'utf8')
  return (JSON.parse(text) as { tools: Binding[] }).tools
}
/** Bindings as they are pasted, and where the tests have the service. */
const movedTo = (url: string, bindings: readonly Binding[]): Binding[] =>
  bindings.map((binding) => ({ ...binding, url: url + new URL(binding.url).pathname }))

let directory: string
let tools: ExampleService
/** Its twin, whose operator is given a fifth of a second. */
let hasty: ExampleService
let sandbox: ExampleService
let storage: ExampleService
/** A sandbox whose Brain server is not there. */
let off: ExampleService
let offPort: number
let server: TestServer

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'brain-services-'))
  const env = { BRAIN_TOOLS_KEY: KEY, TOOLS_LISTEN: '127.0.0.1:0', APPROVALS_PORT: '0' }
  const boxes = { BRAIN_TOOLS_KEY: KEY, SANDBOX_LISTEN: '127.0.0.1:0', SANDBOX_COMPONENT: await sandboxComponent() }
  const files = { BRAIN_TOOLS_KEY: KEY, STORAGE_LISTEN: '127.0.0.1:0', STORAGE_DIR: join(directory, 'files') }
  offPort = await freePort()
  ;[tools, hasty, storage, off] = await Promise.all([
    ExampleService.listening(program('tools'), env),
    ExampleService.listening(program('tools'), { ...env, APPROVAL_SECONDS: '0.2' }),
    ExampleService.listening(program('storage'), files),
    ExampleService.listening(program('sandbox'), { ...boxes, BRAIN_URL: `http://127.0.0.1:${offPort}` }),
  ])
  // It is an application of the server whose sessions use it: each of the two must know the other's address.
  const address = `127.0.0.1:${await freePort()}`
  sandbox = await ExampleService.listening(program('sandbox'), {
    ...boxes,
    BRAIN_URL: `http://${address}`,
    BRAIN_API_KEY: 'key-of-local',
  })
  const own = movedTo(tools.url, [SEED_BINDING, ...(await bindingsOf('tools')).filter(({ name }) => name !== 'echo')])
  const [ask] = movedTo(
    hasty.url,
    own.filter(({ name }) => name === 'ask_operator'),
  )
  const [run] = movedTo(off.url, await bindingsOf('sandbox'))
  server = await startServer(
    { BRAIN_LISTEN: address, BRAIN_API_KEY: 'key-of-local', BRAIN_TOOLS_KEY: KEY, BRAIN_MAX_GUEST_CPU_SECS: '1' },
    {
      tenants: [{ id: 'local', token_env: 'BRAIN_API_KEY' }],
      tools: [
        ...own,
        { ...ask, name: 'ask_hastily' },
        ...movedTo(storage.url, await bindingsOf('storage')),
        ...movedTo(sandbox.url, await bindingsOf('sandbox')),
        { ...run, name: 'run_nowhere' },
      ],
    },
  )
  server.token = 'key-of-local'
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  for (const service of [tools, hasty, sandbox, storage, off]) await service[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

async function session(...names: string[]): Promise<TestSession> {
  const created = await server.post('/v1/sessions', {
    model: { provider: 'scripted', name: 'script', api_key: 'none', script: [{ text: 'done' }] },
    config: { tools: names },
  })
  if (created.status !== 200) throw new Error(created.text)
  return new TestSession(server, created.body.session_id as string, names[0] ?? '')
}

/** What a call says to the model, failed or not. */
async function say(one: TestSession, tool: string, input: object): Promise<string> {
  const { outcome, results } = await one.call(input, { tool, wait: 'finished' })
  if (outcome?.status === 'error') return `error: ${outcome.error.message}`
  const result = results.at(-1)
  return outcome?.status === 'ok' ? (result?.content ?? JSON.stringify(result?.output)) : `${outcome?.status}`
}

/** A call that comes from Brain as far as a service can tell. */
async function direct(
  service: ExampleService,
  tool: string,
  input: object,
  { sessionId = 'ses_1', signal }: { sessionId?: string; signal?: AbortSignal } = {},
): Promise<string> {
  const call = { tenant_id: 'local', session_id: sessionId, call_id: 'call_1', arguments: input }
  const options = { method: 'POST', headers: { authorization: `Bearer ${KEY}` }, body: JSON.stringify(call) }
  const response = await fetch(`${service.url}/tools/${tool}`, { ...options, ...(signal && { signal }) })
  return response.text()
}

describe('the service of tools', () => {
  it('runs the binding of the seed, unchanged', async () => {
    const { body } = await server.get('/catalog')
    const { name, description, input_schema } = SEED_BINDING
    expect(body.tools).toContainEqual({ name, description, input_schema })
    expect(await bindingsOf('tools').then(([first]) => first)).toMatchObject({ name, description, input_schema })
    expect(await say(await session('echo'), 'echo', { text: 'hello' })).toBe('hello')
  })

  it('refuses who has no token, before anything else, and requests that are none', async () => {
    const call = { tenant_id: 'local', session_id: 's', call_id: 'c', arguments: { text: 'hi' } }
    const ask = async (path: string, token: string, body: string, method = 'POST'): Promise<number> => {
      const options = { method, headers: { authorization: `Bearer ${token}` }, ...(method === 'POST' ? { body } : {}) }
      return (await fetch(tools.url + path, options)).status
    }
    const good = JSON.stringify(call)
    for (const token of ['', 'key', `${KEY}x`]) expect(await ask('/tools/echo', token, good)).toBe(401)
    expect(await ask('/nowhere', 'key', good)).toBe(401)
    expect(await ask('/tools/echo', KEY, good)).toBe(200)
    expect(await ask('/tools/constructor', KEY, good)).toBe(404)
    expect(await ask('/tools/echo', KEY, good, 'GET')).toBe(405)
    const bad = ['', '[]', 'null', '{}', JSON.stringify({ ...call, arguments: null })]
    for (const body of [...bad, good.padEnd(8 * 1024 * 1024 + 1)]) expect(await ask('/tools/echo', KEY, body)).toBe(400)
    await using keyless = ExampleService.run(program('tools'))
    expect(await keyless.ended()).toBe(1)
    expect(keyless.printed).toMatch(/^Cannot start tools: BRAIN_TOOLS_KEY is not set/)
    await using lost = ExampleService.run(program('tools'), { BRAIN_TOOLS_KEY: KEY, TOOLS_LISTEN: '8081' })
    expect(await lost.ended()).toBe(1)
    expect(lost.printed).toBe('Cannot start tools: cannot listen on "8081": use HOST:PORT\n')
  })

  it('starts long work at once, and has tools to look after it and to end it', async () => {
    const one = await session('count_primes', 'job_status', 'cancel_job')
    const start = async (below: number) => (await one.value({ below }, { tool: 'count_primes' })) as { job_id: string }
    const [first, long] = [await start(100_000_000), await start(100_000_000)]
    expect(await say(one, 'count_primes', { below: 10 })).toMatch(/^error: Too many jobs/)
    await one.value(first, { tool: 'cancel_job' })
    const short = await start(10_000)
    let status: { state: string } = { state: '' }
    while (status.state !== 'done') status = await one.value(short, { tool: 'job_status' })
    expect(status).toEqual({ state: 'done', percent: 100, primes: 1229 })
    expect(await one.value(long, { tool: 'job_status' })).toMatchObject({ state: 'running' })
    for (let time = 0; time < 2; time++)
      expect(await one.value(long, { tool: 'cancel_job' })).toMatchObject({ state: 'cancelled' })
    // The id alone opens nothing: it is what the model says.
    const other = await session('job_status', 'cancel_job')
    for (const tool of ['job_status', 'cancel_job'])
      expect(await say(other, tool, short)).toMatch(/^error: There is no such job/)
  })

  it('has jobs of which one whose session is over goes on until somebody cancels it', async () => {
    const one = await session('count_primes')
    const job = (await one.value({ below: 100_000_000 })) as object
    await server.post(`${one.path}/end`)
    const ask = (tool: string) => direct(tools, tool, job, { sessionId: one.id })
    expect(await ask('job_status')).toContain('"running"')
    expect(await ask('cancel_job')).toContain('"cancelled"')
  })

  it('runs eight jobs at once and no more, whoever asks', async () => {
    const start = (sessionId: string) => direct(tools, 'count_primes', { below: 100_000_000 }, { sessionId })
    const started = await Promise.all(['a', 'a', 'b', 'b', 'c', 'c', 'd', 'd', 'e'].map(start))
    expect(started.filter((answer) => answer.includes('Too many jobs'))).toHaveLength(1)
    for (const [index, answer] of started.entries()) {
      const { structured_content: job } = JSON.parse(answer)
      if (job !== undefined) await direct(tools, 'cancel_job', job, { sessionId: 'aabbccdde'[index]! })
    }
  })

  it('reads the events of a session with the token of its call, and tells it nobody', async () => {
    const one = await session('session_activity', 'echo')
    await one.call({ text: 'hi' }, { tool: 'echo' })
    expect(await say(one, 'session_activity', {})).toBe('2 calls, 1 ended')
    expect(tools.printed).not.toMatch(/token|Bearer|insp/i)
  })
})

type Asking = { readonly said: Promise<string>; readonly digest: string; readonly one: TestSession }

/** Asks the operator, and waits until the question is on the terminal. */
async function asking(input: object, one?: TestSession): Promise<Asking> {
  const own = one ?? (await session('ask_operator', 'publish_notice'))
  const from = tools.printed.length
  const said = say(own, 'ask_operator', input)
  for (;;) {
    const found = await tools.prints(new RegExp(`^[^]{${from},}?sha256 ([0-9a-f]{64})\n`))
    if (found[0].includes(own.id)) return { said, digest: found[1] ?? '', one: own }
  }
}

describe('approvals', () => {
  const notice = { text: 'We are closed' }
  const action = { tool: 'publish_notice', arguments: notice }

  it('are asked for on the terminal, with progress until somebody answers', async () => {
    const one = await session('ask_operator')
    const stream = await fetch(`${server.url}${one.path}/tool-events`, {
      headers: { accept: 'text/event-stream', authorization: 'Bearer key-of-local' },
    })
    const { said, digest } = await asking({ question: 'Go on\u202e\u001b[2J?' }, one)
    let seen = ''
    for await (const chunk of stream.body!.pipeThrough(new TextDecoderStream())) {
      seen += chunk
      if (seen.includes('tool.progress')) break
    }
    expect(seen).toContain('{"status":"waiting_for_operator"}')
    // What the model says moves no cursor and turns no line around.
    expect(tools.printed).toContain('Go on\\u202e\\u001b[2J?')
    tools.type('yes')
    tools.type(`yes ${'0'.repeat(12)}`)
    await tools.prints(/Cannot take this answer: type yes or no and the digest\nCannot answer "000000000000"/)
    tools.type(`yes ${digest.slice(0, 12)}`)
    expect(await said).toBe('Operator answered yes.')
  })

  it('are given on a page that shows what it is told and takes answers from itself alone', async () => {
    const { said, digest } = await asking({ question: '<script>alert("1")</script>' })
    const page = new URL((await tools.prints(/approvals at (\S+)/))[1] ?? '')
    const send = (options: { path?: string; method?: string; headers?: object; body?: string }): Promise<Answer> =>
      exchange(page, options)
    const shown = await send({})
    expect(shown.body).toContain('&lt;script&gt;alert(\\&quot;1\\&quot;)&lt;/script&gt;')
    expect(shown.body).not.toContain('<script')
    expect(shown.body).toContain(`sha256 ${digest}`)
    expect(shown.headers['content-security-policy']).toContain("default-src 'none'")
    const origin = page.origin
    const form = { method: 'POST', body: `digest=${digest}&answer=yes` }
    for (const headers of [
      {},
      { origin: 'null' },
      { origin: 'https://evil.example' },
      { origin, 'sec-fetch-site': 'cross-site' },
      { origin, 'sec-fetch-site': 'same-site' },
    ])
      expect((await send({ ...form, headers })).status).toBe(403)
    expect((await send({ ...form, headers: { origin, host: 'rebound.example' } })).status).toBe(421)
    expect((await send({ ...form, headers: { origin }, path: '/' })).status).toBe(404)
    const other = digest.replace(/^./, (first) => (first === '0' ? '1' : '0'))
    expect((await send({ ...form, headers: { origin }, body: `digest=${other}&answer=yes` })).status).toBe(409)
    expect((await send({ ...form, headers: { origin }, body: `digest=${digest}&answer=maybe` })).status).toBe(400)
    expect((await send({ ...form, headers: { origin }, body: `digest=${digest}&answer=no` })).status).toBe(303)
    expect(await said).toBe('Operator answered no.')
    expect((await send({ ...form, headers: { origin } })).status).toBe(409)
  })

  it('let through what was approved, to the letter, once, for the session that asked', async () => {
    const { said, digest, one } = await asking({ question: 'Publish?', action })
    expect(await say(one, 'publish_notice', notice)).toMatch(/^error: Not approved/)
    tools.type(`yes ${digest}`)
    expect(await said).toBe('Operator answered yes.')
    const refused = /^error: Not approved/
    expect(await say(one, 'publish_notice', { text: 'We are open' })).toMatch(refused)
    expect(await say(await session('publish_notice'), 'publish_notice', notice)).toMatch(refused)
    expect(await say(one, 'publish_notice', notice)).toBe('The notice is published.')
    expect(await say(one, 'publish_notice', notice)).toMatch(refused)
  })

  it('are each for one question, whose digest nobody can know beforehand', async () => {
    const ask = () => direct(tools, 'ask_operator', { question: 'The same?' })
    const asked = [ask(), ask()]
    await tools.prints(/(?:[^]*?The same\?[^]*?sha256 [0-9a-f]{64}[^]*?type: ){2}/)
    const digests = [...tools.printed.matchAll(/The same\?[^]*?sha256 ([0-9a-f]{64})/g)].map(
      ([, digest = '']) => digest,
    )
    expect(new Set(digests.map((digest) => digest.slice(0, 12))).size).toBe(2)
    tools.type(`no ${digests[0]?.slice(0, 12)}`)
    expect(await Promise.race(asked)).toContain('Operator answered no.')
    tools.type(`yes ${digests[1]?.slice(0, 12)}`)
    expect((await Promise.all(asked)).filter((words) => words.includes('Operator answered yes.'))).toHaveLength(1)
  })

  it('that are refused let nothing through', async () => {
    const { said, digest, one } = await asking({ question: 'Publish?', action })
    tools.type(`no ${digest}`)
    expect(await said).toBe('Operator answered no.')
    expect(await say(one, 'publish_notice', notice)).toMatch(/^error: Not approved/)
  })

  it('that nobody gives in time are none', async () => {
    const one = await session('ask_hastily')
    expect(await say(one, 'ask_hastily', { question: 'Publish?', action })).toMatch(
      /^error: No operator answered in time/,
    )
    expect(hasty.printed).toContain(': timeout')
  })

  it('whose call is gone can be given no more', async () => {
    const { said, digest, one } = await asking({ question: 'Publish?', action })
    await server.post(`${one.path}/end`)
    expect(await said).toBe('cancelled')
    await tools.prints(new RegExp(`${digest.slice(0, 12)}: gone`))
    tools.type(`yes ${digest}`)
    await tools.prints(new RegExp(`Cannot answer "${digest}"`))
  })

  it('wait for at most 64 answers', async () => {
    const leave = new AbortController()
    const answers = Array.from({ length: 65 }, (_, index) =>
      direct(tools, 'ask_operator', { question: 'Wait' }, { sessionId: `ses_${index}`, signal: leave.signal }),
    )
    const ended = Promise.allSettled(answers)
    // The others wait: only the one too many is answered.
    expect(await Promise.race(answers)).toContain('Too many questions wait')
    leave.abort()
    expect((await ended).filter(({ status }) => status === 'rejected')).toHaveLength(64)
  })

  it('do not outlive the service', async () => {
    const env = { BRAIN_TOOLS_KEY: KEY, TOOLS_LISTEN: '127.0.0.1:0', APPROVALS_PORT: '0' }
    await using before = await ExampleService.listening(program('tools'), env)
    const approved = direct(before, 'ask_operator', { question: 'Publish?', action })
    const digest = (await before.prints(/sha256 ([0-9a-f]{64})/))[1] ?? ''
    before.type(`yes ${digest}`)
    expect(await approved).toContain('Operator answered yes.')
    const open = direct(before, 'ask_operator', { question: 'And this?' })
    open.catch(() => undefined)
    await before.prints(/And this/)
    expect(await before.stop()).toBe(0)
    await expect(open).rejects.toThrow(/./)
    await using after = await ExampleService.listening(program('tools'), env)
    expect(await direct(after, 'publish_notice', notice)).toContain('Not approved')
    after.type(`yes ${digest}`)
    await after.prints(new RegExp(`Cannot answer "${digest}"`))
  })
})

type Answer = {
  readonly status: number | undefined
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** One exchange, with whatever headers: `fetch` would send the right host and origin. */
async function exchange(
  page: URL,
  options: { path?: string; method?: string; headers?: object; body?: string },
): Promise<Answer> {
  const type = { 'content-type': 'application/x-www-form-urlencoded', 'content-length': options.body?.length ?? 0 }
  const { path = page.pathname, method = 'GET', headers, body } = options
  const sent = request({ host: page.hostname, port: page.port, path, method, headers: { ...type, ...headers } })
  const [response] = (await once(sent.end(body), 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of response) text += String(chunk)
  return { status: response.statusCode, headers: response.headers, body: text }
}

describe('the storage', () => {
  const names = ['write_file', 'read_file', 'list_files'] as const
  const write = (one: TestSession, path: string, text = 'x') => say(one, 'write_file', { path, text })

  it('keeps the files of a session for it alone, whatever the model says', async () => {
    const [one, other] = [await session(...names), await session(...names)]
    expect(await write(one, 'notes/today.txt', 'Buy milk')).toBe('Wrote 8 bytes to notes/today.txt.')
    expect(await say(one, 'read_file', { path: 'notes/today.txt' })).toBe('{"text":"Buy milk"}')
    expect(await say(one, 'list_files', {})).toBe('{"files":[{"path":"notes/today.txt","bytes":8}]}')
    expect(await say(other, 'list_files', {})).toBe('{"files":[]}')
    expect(await say(other, 'read_file', { path: 'notes/today.txt' })).toMatch(/^error: There is no file/)
    // Who the call is for is no argument: one more is refused before it is sent, and would not be looked at.
    const input = { path: 'notes/today.txt', session_id: one.id, tenant_id: 'local' }
    expect(await say(other, 'read_file', input)).toMatch(/^error: .*input/)
    expect(await direct(storage, 'read_file', input, { sessionId: other.id })).toContain('There is no file')
  })

  it('refuses paths that lead out of them, by words or by a link', async () => {
    const one = await session(...names)
    await write(one, 'kept.txt')
    for (const path of [
      '',
      '.',
      '..',
      '../kept.txt',
      'a/../../b',
      '/etc/passwd',
      'a//b',
      'a\\b',
      'a\0b',
      '.hidden',
      '%2e%2e/b',
      'a/b/c/d/e/f/g/h/i',
    ])
      for (const tool of ['read_file', 'write_file'])
        expect(await say(one, tool, { path, ...(tool === 'write_file' ? { text: 'x' } : {}) })).toMatch(
          /^error: .* is no path/,
        )
    await writeFile(join(directory, 'outside.txt'), 'not yours')
    const folders = await readdir(join(directory, 'files'))
    for (const folder of folders) {
      await symlink(directory, join(directory, 'files', folder, 'link'))
      await symlink(join(directory, 'outside.txt'), join(directory, 'files', folder, 'file-link'))
    }
    expect(await say(one, 'read_file', { path: 'link/outside.txt' })).toMatch(/^error: .* leads out of the files/)
    expect(await write(one, 'link/outside.txt')).toMatch(/^error: .* leads out of the files/)
    expect(await say(one, 'read_file', { path: 'file-link' })).toMatch(/^error: There is no file/)
    await write(one, 'notes/kept.txt')
    expect(await say(one, 'read_file', { path: 'notes' })).toMatch(/^error: "notes" is no file/)
    expect(await write(one, 'notes')).toMatch(/^error: Cannot write "notes"/)
    // As many letters as a name may have, and as many bytes as no file system takes.
    expect(await write(one, '漢'.repeat(85))).toMatch(/^Wrote 1 bytes/)
    expect(await write(one, '漢'.repeat(86))).toMatch(/^error: .* is no path/)
    expect(await write(one, 'kept.txt/below')).toMatch(/^error: Cannot write .* a file is where a folder would be/)
    await write(one, 'file-link', 'replaced')
    expect(await readFile(join(directory, 'outside.txt'), 'utf8')).toBe('not yours')
  })

  it('has quotas, also for writes that come at once', async () => {
    const one = await session(...names)
    const text = 'x'.repeat(256 * 1024)
    expect(await write(one, 'large.txt', `${text.slice(1)}é`)).toMatch(/^error: A file has at most 262144 bytes/)
    const said = await Promise.all(Array.from({ length: 20 }, (_, index) => write(one, `${index}.txt`, text)))
    expect(said.filter((words) => words.startsWith('Wrote')).length).toBe(16)
    expect(said.filter((words) => words.startsWith('error: The files of a session')).length).toBe(4)
    const small = (index: number) => direct(storage, 'write_file', { path: `${index}.txt`, text: '' })
    await Promise.all(Array.from({ length: 200 }, (_, index) => small(index)))
    expect(await small(200)).toContain('A session has at most 200 files')
    expect(await small(0)).toContain('Wrote 0 bytes')
  })
})

describe('the sandbox', () => {
  it('runs code in a box of its own each time, without files, network or anything of ours', async () => {
    const one = await session('run_javascript')
    const sessions = (await server.get('/v1/sessions')).body.sessions.length
    const run = (code: string) => say(one, 'run_javascript', { code })
    expect(await run('console.log("a", { b: 1 }); [1, 2].map((n) => n * 2)')).toBe(
      '{"result":"[2,4]","printed":"a {\\"b\\":1}\\n"}',
    )
    for (let time = 0; time < 2; time++)
      expect(await run('globalThis.kept = (globalThis.kept ?? 0) + 1')).toContain('"result":"1"')
    expect(await run('[typeof fetch, typeof process, typeof require].join()')).toContain(
      'undefined,undefined,undefined',
    )
    expect(await run('throw new Error("no")')).toBe('error: Error: no')
    expect(await run('for (;;);')).toMatch(/^error: The tool computed longer than 1 seconds/)
    // What was made for the calls is gone again.
    expect((await server.get('/v1/sessions')).body.sessions.length).toBe(sessions)
    expect(sandbox.printed).not.toContain('left behind')
  })

  it('admits its component again when the server has it no more', async () => {
    const one = await session('run_javascript')
    const run = () => say(one, 'run_javascript', { code: '1' })
    expect(await run()).toContain('"result":"1"')
    for (const { id } of (await server.get('/v1/tools')).body.tools)
      expect((await server.request('DELETE', `/v1/tools/${id}`)).status).toBe(204)
    expect(await run()).toMatch(/^error: The sandbox refused the code: .*no tool/)
    expect(await run()).toContain('"result":"1"')
  })

  it('is off, and says so, where its Brain server cannot be reached or has no sandbox', async () => {
    const one = await session('run_nowhere')
    const run = () => say(one, 'run_nowhere', { code: '1' })
    expect(await run()).toBe('error: The sandbox is off: its Brain server cannot be reached')
    const message = 'Cannot admit components: this machine offers no sandbox'
    const without = createServer((_request, response) =>
      response
        .writeHead(503, { 'content-type': 'application/json' })
        .end(JSON.stringify({ code: 'sandbox_unavailable', message, retryable: false })),
    ).listen(offPort, '127.0.0.1')
    await once(without, 'listening')
    expect(await run()).toBe(`error: The sandbox is off: ${message}`)
    without.closeAllConnections()
    without.close()
  })
})

describe('a host config', () => {
  const brain = [process.execPath, '--disable-warning=ExperimentalWarning', 'src/cli/brain.ts']
  const variables = { BRAIN_API_KEY: 'a', BRAIN_TOOLS_KEY: KEY, BRAIN_LISTEN: '127.0.0.1:0' }

  it('with one invalid binding starts nothing; with the pasted ones it is valid', async () => {
    const pasted = (await Promise.all((['tools', 'sandbox', 'storage'] as const).map(bindingsOf))).flat()
    const run = async (tools: readonly object[], ...flags: string[]): Promise<[number | null, string]> => {
      const config = join(directory, `${tools.length}.json`)
      await writeFile(config, JSON.stringify({ tenants: [{ id: 'local', token_env: 'BRAIN_API_KEY' }], tools }))
      const env = { ...variables, BRAIN_DATA_DIR: join(directory, 'unused'), BRAIN_API_TOKEN: 'unheard' }
      await using command = ExampleService.run([...brain, ...flags, '-config', config], env)
      return [await command.ended(), command.printed]
    }
    const wrong = [...pasted, { ...SEED_BINDING, name: 'other', timeout_seconds: 0 }]
    const [valid, checked, served] = await Promise.all([
      run(pasted, '-check'),
      run(wrong, '-check'),
      run([...wrong, { ...SEED_BINDING, name: 'more' }]),
    ])
    const unused = 'BRAIN_API_TOKEN: has no effect, since the host config lists tenants'
    expect(valid).toEqual([0, `${unused}: name it in token_env of one, or unset it\nthe configuration is valid\n`])
    for (const [code, printed] of [checked, served]) {
      expect(code).not.toBe(0)
      expect(printed).toContain('timeout_seconds')
      expect(printed).not.toContain('listens on')
    }
    await expect(readdir(join(directory, 'unused'))).rejects.toThrow('ENOENT')
  })
})

describe('the session in one command', () => {
  it('generates a host config, starts what it needs, and shows what the tools do', async () => {
    const env = { TMPDIR: directory, BRAIN_TOOLS: 'echo,ask_operator,publish_notice' }
    await using run = ExampleService.run([process.execPath, 'examples/session.mjs'], env)
    run.type(`yes ${(await run.prints(/sha256 ([0-9a-f]{64})/))[1]}`)
    expect(await run.ended()).toBe(0)
    for (const line of [
      'the catalog has echo, ask_operator, publish_notice',
      'tool.call echo {"text":"hello"}',
      'tool.result hello',
      'tool.progress {"status":"waiting_for_operator"}',
      'tool.result Operator answered yes.',
      'tool.result The notice is published.',
      'the model says: That is all.',
    ])
      expect(run.printed).toContain(`${line}\n`)
    expect((await readdir(directory)).filter((name) => name.startsWith('brain-session-'))).toEqual([])
  })

  it('uses the server that it is given, and says what it has not', async () => {
    const env = { TMPDIR: directory, BRAIN_URL: server.url, BRAIN_API_KEY: 'key-of-local', BRAIN_TOOLS: 'echo' }
    await using run = ExampleService.run([process.execPath, 'examples/session.mjs'], env)
    expect(await run.ended()).toBe(0)
    expect(run.printed).toContain('tool.result hello\n')
    await using lost = ExampleService.run([process.execPath, 'examples/session.mjs'], {
      ...env,
      BRAIN_TOOLS: 'nothing',
    })
    expect(await lost.ended()).toBe(1)
    expect(lost.printed).toMatch(/^Cannot run the session: BRAIN_TOOLS names "nothing", which is none of echo, /)
  })
})
