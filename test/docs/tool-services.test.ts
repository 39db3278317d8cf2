import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest'
import { ExampleService } from '../support/example-service.ts'
import { startServer, TestSession, type TestServer } from '../support/server.ts'
import { fencedBlocks } from './fenced-blocks.ts'
import { readPage } from './pages.ts'

const PAGE = readPage('docs/distributed-tools.md')
const KEY = 'key-of-the-tools'
const blocks = fencedBlocks(PAGE)
const serviceIn = (language: string): string =>
  blocks.find((block) => block.language === language && block.marks.includes('service'))?.text ?? ''

/** What a service does that is not as it should be. */
const MISDEEDS: Readonly<Record<string, (response: ServerResponse) => unknown>> = {
  moved: (response) => response.writeHead(302, { location: '/well' }).end(),
  forbidden: (response) => response.writeHead(403).end(),
  broken: (response) => response.writeHead(500).end(),
  nonsense: (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"done":true}'),
  endless: (response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(`{"content":"${'x'.repeat(2000)}`),
  silent: (response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': nothing\n\n'),
  sorry: (response) =>
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end('{"is_error":true,"content":[{"type":"text","text":"There is no such city"}]}'),
  mismatch: (response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"structured_content":{"n":"one"}}'),
  cut: (response) => response.destroy(),
  slow: () => undefined,
  hung: () => undefined,
}

/** The tool and the arguments with which each failure of the page comes about. */
const FAILURES: Readonly<Record<string, string>> = {
  'the arguments are against `input_schema`': 'picky',
  'nobody answers at the `url`': 'nowhere',
  'a redirect, which is not followed': 'moved',
  'a status 4xx': 'forbidden',
  'the service says `is_error`': 'sorry',
  'a result against `output_schema`': 'mismatch',
  'a status 5xx': 'broken',
  'an answer that is no result': 'nonsense',
  'a stream that ends without a result': 'silent',
  'more than `max_output_bytes`': 'endless',
  'a connection that breaks': 'cut',
  '`timeout_seconds` are over': 'slow',
  'an interruption': 'hung',
}

/** Calls that arrived, by tool. */
const arrived = new Map<string, number>()
let heard: () => void = () => undefined
const misbehaving = createServer((request, response) => {
  const name = request.url?.slice(1) ?? ''
  arrived.set(name, (arrived.get(name) ?? 0) + 1)
  heard()
  request.resume().on('end', () => MISDEEDS[name]?.(response))
})

let directory: string
let server: TestServer
const services: ExampleService[] = []

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'brain-guide-'))
  const env = { BRAIN_TOOLS_KEY: KEY, PORT: '0' }
  await writeFile(join(directory, 'shout.mjs'), serviceIn('js'))
  await writeFile(join(directory, 'words.py'), serviceIn('python'))
  await once(misbehaving.listen(0, '127.0.0.1'), 'listening')
  const at = `http://127.0.0.1:${(misbehaving.address() as { port: number }).port}`
  services.push(
    await ExampleService.listening([process.execPath, join(directory, 'shout.mjs')], env),
    await ExampleService.listening(['python3', join(directory, 'words.py')], env),
  )
  const config = JSON.parse(blocks.find(({ marks }) => marks.includes('host-config'))?.text ?? '') as {
    tools: { url: string; input_schema: object }[]
  }
  const [shout] = config.tools
  const own = { description: 'Fails.', input_schema: { type: 'object' }, timeout_seconds: 5, max_output_bytes: 1000 }
  server = await startServer(
    { BRAIN_API_KEY: 'key-of-local', BRAIN_TOOLS_KEY: KEY },
    {
      ...config,
      tools: [
        { ...shout, url: `${services[0]?.url}/tools/shout` },
        { ...shout, name: 'words', url: `${services[1]?.url}/tools/words` },
        { ...own, name: 'picky', url: at, input_schema: shout?.input_schema },
        { ...own, name: 'nowhere', url: 'http://127.0.0.1:9/' },
        ...Object.keys(MISDEEDS).map((name) => ({
          ...own,
          name,
          url: `${at}/${name}`,
          ...(name === 'slow' ? { timeout_seconds: 1 } : {}),
          ...(name === 'mismatch' ? { output_schema: { properties: { n: { type: 'integer' } } } } : {}),
        })),
      ],
    },
  )
  server.token = 'key-of-local'
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  for (const service of services) await service[Symbol.asyncDispose]()
  misbehaving.closeAllConnections()
  misbehaving.close()
  await rm(directory, { recursive: true, force: true })
})

async function session(tool: string, script: readonly object[] = [{ text: 'done' }]): Promise<TestSession> {
  const created = await server.post('/v1/sessions', {
    model: { provider: 'scripted', name: 'script', api_key: 'none', script },
    config: { tools: [tool] },
  })
  if (created.status !== 200) throw new Error(created.text)
  return new TestSession(server, created.body.session_id as string, tool)
}

describe('the services of the guide', () => {
  it.each([
    ['js', 0, 'shout', { content: [{ type: 'text', text: 'ONE TWO ONE' }] }],
    ['python', 1, 'words', { words: 3, unique: 2 }],
  ] as const)('in %s has no more than 40 lines and does what it says', async (language, index, tool, value) => {
    expect(serviceIn(language).trim().split('\n').length).toBeLessThanOrEqual(40)
    const one = await session(tool)
    expect(await one.value({ text: 'one two one' })).toEqual(value)
    const body = '{"tenant_id":"a","session_id":"b","call_id":"c","arguments":{"text":"hi"}}'
    for (const authorization of ['', `Bearer ${KEY}x`])
      expect((await fetch(services[index]!.url, { method: 'POST', headers: { authorization }, body })).status).toBe(401)
  })

  it('in rust has no more than 40 lines and does what it says', async (context) => {
    expect(serviceIn('rust').trim().split('\n').length).toBeLessThanOrEqual(40)
    await writeFile(join(directory, 'uptime.rs'), serviceIn('rust'))
    const rustc = ['--edition=2021', '-C', 'debuginfo=0', '-o', join(directory, 'uptime'), join(directory, 'uptime.rs')]
    const failed = await promisify(execFile)('rustc', rustc).then(
      () => undefined,
      (error: NodeJS.ErrnoException) => error,
    )
    if (failed?.code === 'ENOENT') return notRun(context)
    expect(failed?.message).toBeUndefined()
    await using service = await ExampleService.listening([join(directory, 'uptime')], {
      BRAIN_TOOLS_KEY: KEY,
      PORT: '0',
    })
    const ask = (token: string): Promise<Response> =>
      fetch(service.url, { method: 'POST', headers: { authorization: `Bearer ${token}` }, body: '{"arguments":{}}' })
    expect(await (await ask(KEY)).json()).toEqual({ structured_content: { seconds: expect.any(Number) } })
    expect((await ask(`${KEY}x`)).status).toBe(401)
  })
})

/** A check that this machine cannot make must not look like one that passed. */
function notRun(context: TestContext): void {
  const reason = 'the Rust service of docs/distributed-tools.md: there is no rustc on the PATH'
  if (process.env['CI'] === 'true') throw new Error(`NOT CHECKED, and CI must: ${reason}`)
  process.stderr.write(`\nNOT CHECKED: ${reason}\n\n`)
  context.skip(reason)
}

describe('the failures of the guide', () => {
  const rows = [...PAGE.matchAll(/^\| (.+) \| `(\w+)` \| (yes) \| (yes)? ?\| (.+) \|$/gm)]

  it('are all of what this file makes happen', () => {
    expect(rows.map(([, failure]) => failure)).toEqual(Object.keys(FAILURES))
  })

  // Beside each other, since each has a session of its own and some wait.
  it.concurrent.each(rows.map(([, ...cells]) => cells))(
    '%s',
    async (...[failure = '', code, isError, unknown, seen = '']) => {
      const tool = FAILURES[failure] ?? ''
      const one = await session(tool, [{ tool_calls: [{ name: tool, input: {} }] }, { text: 'done' }])
      const turn = one.send('go')
      if (tool === 'hung') {
        while (!arrived.has(tool)) await new Promise<void>((resolve) => (heard = resolve))
        await server.post(`${one.path}/cancel`)
      }
      await turn
      if (tool === 'hung') await one.send('and then?')
      const { body } = await server.get(`${one.path}/tool-events`)
      const { data } = body.events.at(-1)
      expect(data.is_error).toBe(isError === 'yes')
      expect(data.unknown_outcome ?? false).toBe(unknown === 'yes')
      const { messages } = (await server.get(`${one.path}/transcript`)).body
      const shown = JSON.stringify(messages)
      expect(JSON.stringify(await one.records())).toMatch(new RegExp(`"(?:code|status)":"${code}"`))
      const words = seen === 'what the service says' ? 'There is no such city' : seen
      const pieces = words.split('…').map((piece) => RegExp.escape(JSON.stringify(piece.trim()).slice(1, -1)))
      expect(shown).toMatch(new RegExp(pieces.join('[^]*?')))
      expect(arrived.get(tool) ?? 0).toBeLessThanOrEqual(1)
    },
  )
})
