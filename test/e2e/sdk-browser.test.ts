import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { expect, it } from 'vitest'
import { startServer } from '../support/server.ts'

const root = join(import.meta.dirname, '../..')
const BROWSERS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const browser = BROWSERS.find((path) => existsSync(path))

/** What a page does with the client; what came of it goes to the server of the page. */
const PAGE = `
import { Brain, tool } from './src/sdk/index.ts'
import { z } from 'zod'

const told = await (async () => {
  const clicked = tool({
    name: 'clicked',
    description: 'Says what was clicked',
    input: z.object({ id: z.string() }),
    options: z.object({ prefix: z.string() }),
    async run({ id }, ctx) {
      const sequence = await ctx.emit('looked', { title: document.title })
      return ctx.finish({ what: ctx.options.prefix + id, after: sequence > 0 })
    },
  })
  const brain = new Brain({ baseUrl: new URLSearchParams(location.search).get('brain') })
  try {
    const session = await brain.sessions.create({
      model: {
        provider: 'scripted',
        name: 'script',
        apiKey: 'k',
        script: [{ tool_calls: [{ name: 'clicked', input: { id: 'b1' } }] }, { text: 'It was b1' }],
      },
      tools: [clicked({ prefix: '#' })],
    })
    await session.send('What was clicked?')
    const types = []
    const results = []
    for await (const event of session.events()) {
      types.push(event.type)
      if (event.type === 'tool_result_emitted') results.push(event.data.result.output)
    }
    const live = []
    for await (const event of session.stream()) if (live.push(event.type) === types.length) break
    const refused = await session.send('').catch((error) => [error.name, error.code])
    await session.end()
    return { results, isWhole: live.join() === types.join(), looked: types.includes('looked'), refused }
  } finally {
    await brain.close()
  }
})().catch((error) => ({ error: String(error?.stack ?? error) }))
await fetch('/told', { method: 'POST', body: JSON.stringify(told) })
`

async function bundled(): Promise<Uint8Array> {
  const { outputFiles } = await build({
    stdin: { contents: PAGE, resolveDir: root, loader: 'ts' },
    bundle: true,
    write: false,
    platform: 'browser',
    format: 'esm',
    logLevel: 'silent',
  })
  return outputFiles[0]?.contents ?? expect.unreachable('esbuild wrote nothing')
}

it('a page that uses the client is bundled without anything of Node', async () => {
  expect(Buffer.from(await bundled()).toString()).not.toMatch(/\bnode:|\bBuffer\b/)
})

if (browser === undefined) process.stderr.write('sdk-browser: NOT TESTED in a browser: there is no Chromium\n')

// What a machine cannot do is no test there, rather than a skipped one.
if (browser !== undefined)
  it('the client runs in a browser: a page has tools of its own', async () => {
    const script = await bundled()
    const told = Promise.withResolvers<unknown>()
    const pages = createServer((request, response) => {
      if (request.url === '/told') {
        const chunks: Buffer[] = []
        request.on('data', (chunk: Buffer) => chunks.push(chunk))
        request.on('end', () => told.resolve(JSON.parse(Buffer.concat(chunks).toString())))
        response.end()
      } else if (request.url === '/page.js') response.setHeader('content-type', 'text/javascript').end(script)
      else
        response
          .setHeader('content-type', 'text/html')
          .end('<title>A page</title><script type=module src=/page.js></script>')
    })
    pages.listen(0, '127.0.0.1')
    await once(pages, 'listening')
    const origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`
    await using server = await startServer({ BRAIN_CORS_ORIGINS: origin })
    const profile = await mkdtemp(join(tmpdir(), 'brain-browser-'))
    const flags = [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-dev-shm-usage',
    ]
    const child = spawn(browser ?? '', [...flags, `--user-data-dir=${profile}`, `${origin}/?brain=${server.url}`], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
    const gone = once(child, 'exit').then(() => ({ error: `the browser ended: ${said.slice(-2000)}` }))
    try {
      expect(await Promise.race([told.promise, gone])).toEqual({
        results: [{ what: '#b1', after: true }],
        isWhole: true,
        looked: true,
        refused: ['BrainError', 'invalid_request'],
      })
    } finally {
      child.kill('SIGKILL')
      await gone
      pages.closeAllConnections()
      pages.close()
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    }
  })
