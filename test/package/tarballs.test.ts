import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, posix } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runToolProcess } from '../../src/sdk/runtime.ts'
import { fencedBlocks } from '../docs/fenced-blocks.ts'
import { fixture, startServer } from '../support/server.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
  version: string
  dependencies: Record<string, string>
}

/** The Node that runs the tests comes first, whatever the machine has. */
const PATH = [dirname(process.execPath), process.env['PATH']].join(delimiter)
const env = { ...process.env, PATH, BRAIN_SCRIPTED_MODEL: '1' }

/** Runs a program to its end, whatever its exit code. */
async function outcomeOf(
  file: string,
  args: readonly string[],
  options: { cwd: string; env?: NodeJS.ProcessEnv },
): Promise<{ code: number; out: string; err: string }> {
  try {
    const { stdout, stderr } = await run(file, args, { env, ...options })
    return { code: 0, out: stdout, err: stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { code, out: stdout, err: stderr }
  }
}

describe('published packages', () => {
  let folder = ''
  const tarball = (name: string): string => join(folder, 'dist', `${name}-${manifest.version}.tgz`)
  const client = (): string => join(folder, 'client')
  const server = (): string => join(folder, 'server')
  const brain = (): string => join(server(), 'node_modules/.bin/brain')

  async function install(directory: string, file: string): Promise<void> {
    await mkdir(directory)
    await run('npm', ['install', '--no-audit', '--no-fund', file], { cwd: directory, env })
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'brain-package-'))
    await run(process.execPath, [
      '--disable-warning=ExperimentalWarning',
      join(root, '.ci/build/build.ts'),
      join(folder, 'dist'),
    ])
    await install(client(), tarball('brain'))
    await install(server(), tarball('brain-server'))
  })

  afterAll(() => rm(folder, { recursive: true, force: true }))

  /** What a page has to load of the client. */
  async function browserBundle(
    external: string[],
    entry = '@aexhq/brain',
  ): Promise<{ text: string; contents: Uint8Array }> {
    const { outputFiles } = await build({
      stdin: { contents: `export * from '${entry}'`, resolveDir: client() },
      bundle: true,
      write: false,
      minify: external.length > 0,
      platform: 'browser',
      format: 'esm',
      logLevel: 'silent',
      external,
    })
    const [bundle] = outputFiles
    if (bundle === undefined) throw new Error('esbuild wrote nothing')
    return bundle
  }

  describe('@aexhq/brain', () => {
    it.each(['tool.wit', 'agentloop.wit', 'session.json', 'host-config.json'])(
      'exports %s as it stands in wit/',
      async (world) => {
        const script = `process.stdout.write(import.meta.resolve('@aexhq/brain/contracts/${world}'))`
        const { out } = await outcomeOf(process.execPath, ['--input-type=module', '-e', script], { cwd: client() })
        expect(await readFile(new URL(out))).toEqual(await readFile(join(root, 'wit', world)))
      },
    )

    it('imports in Node and bundles for a browser without anything of Node', async () => {
      const script = `console.log(Object.keys(await import('@aexhq/brain')))`
      expect(await outcomeOf(process.execPath, ['--input-type=module', '-e', script], { cwd: client() })).toMatchObject(
        {
          code: 0,
          err: '',
        },
      )
      expect((await browserBundle([])).text).not.toContain('node:')
      expect((await browserBundle(['zod'])).text).not.toMatch(/\bBuffer\b/)
    })

    it.each([
      ['environments', []],
      ['http', ['application', 'applicationTool', 'http', 'httpTool']],
      ['http/handler', ['createToolHandler']],
    ])('has the entry %s, which is loaded alone and anywhere', async (entry, names) => {
      const script = `console.log(JSON.stringify(Object.keys(await import('@aexhq/brain/${entry}'))))`
      const loaded = await outcomeOf(process.execPath, ['--input-type=module', '-e', script], { cwd: client() })
      expect(loaded).toEqual({ code: 0, out: `${JSON.stringify(names)}\n`, err: '' })
      const { text } = await browserBundle(['zod'], `@aexhq/brain/${entry}`)
      expect(text).not.toMatch(/node:|\bBuffer\b/)
    })

    it('has the entry http/server for Node, with the errors of the client and nothing of the server', async () => {
      const script = `
        import { BrainError, environmentHandler } from '@aexhq/brain'
        import * as entry from '@aexhq/brain/http/server'
        const { run } = environmentHandler({ setup: () => { throw new BrainError(0, 'busy', 'Later') } })
        const { url, close } = await entry.serveEnvironment(run, { token: 'a' })
        const request = { type: 'setup', configuration: null }
        const operation = { session_id: 's', environment: 'e', sequence: 1, binding: { name: 'e', sequence: 1 }, request }
        const response = await fetch(url + '/v1/operations', {
          method: 'POST',
          headers: { authorization: 'Bearer a' },
          body: JSON.stringify({ contract: 'environment/v1', operation }),
        })
        console.log(Object.keys(entry).join(), (await response.json()).receipt.code)
        await close()`
      expect(await outcomeOf(process.execPath, ['--input-type=module', '-e', script], { cwd: client() })).toEqual({
        code: 0,
        out: 'createHttpEnvironment,serveEnvironment busy\n',
        err: '',
      })
      const files = globSync('node_modules/@aexhq/brain/lib/**/*', { cwd: client() })
      expect(files.filter((file) => /lib\/(?!sdk|kernel|contract)[^/]+\//.test(file))).toEqual([])
    })

    it('depends on zod alone, and is at most 60 KiB gzipped without it', async () => {
      const { dependencies } = JSON.parse(
        await readFile(join(client(), 'node_modules/@aexhq/brain/package.json'), 'utf8'),
      ) as { dependencies: object }
      expect(dependencies).toEqual({ zod: manifest.dependencies['zod'] })
      const { length } = gzipSync((await browserBundle(['zod'])).contents)
      process.stdout.write(`brain: ${(length / 1024).toFixed(1)} KiB gzipped in a browser, without zod\n`)
      expect(length).toBeLessThanOrEqual(60 * 1024)
    })

    it('declares and places a tool, and talks to a server, as it is installed', async () => {
      const script = `
        import { Brain, tool } from '@aexhq/brain'
        import { z } from 'zod'
        const double = tool({ name: 'double', description: 'Doubles', input: z.object({ n: z.number() }), run: ({ n }, ctx) => ctx.finish(n * 2) })
        const brain = new Brain({ baseUrl: 'http://127.0.0.1:9', fetch: async (url) => Response.json({ url }) })
        console.log(double().name, JSON.stringify(await brain.models()))
        await brain.close()`
      expect(await outcomeOf(process.execPath, ['--input-type=module', '-e', script], { cwd: client() })).toEqual({
        code: 0,
        out: 'double {"url":"http://127.0.0.1:9/v1/models"}\n',
        err: '',
      })
    })

    it('runs an application on Node 22', async () => {
      const directory = join(folder, 'node-22')
      const name = `node-${process.platform}-${process.arch}`
      await install(directory, `${name}@22`)
      const node = join(directory, 'node_modules', name, 'bin/node')
      await using server = await startServer()
      const script = `
        import { Brain, tool } from '@aexhq/brain'
        import '@aexhq/brain/runtime'
        import { z } from 'zod'
        const double = tool({ name: 'double', description: 'Doubles', input: z.object({ n: z.number() }), run: ({ n }, ctx) => ctx.finish(n * 2) })
        const brain = new Brain({ baseUrl: '${server.url}' })
        try {
          const script = [{ tool_calls: [{ name: 'double', input: { n: 21 } }] }, { text: 'done' }]
          const session = await brain.sessions.create({ model: { provider: 'scripted', name: 'script', apiKey: 'k', script }, tools: [double()] })
          await session.send('What is twice 21?')
          for await (const { type, data } of session.events()) if (type === 'tool_result_emitted') console.log(process.version, data.result.output)
        } finally {
          await brain.close()
        }`
      expect(await outcomeOf(node, ['--input-type=module', '-e', script], { cwd: client() })).toEqual({
        code: 0,
        out: expect.stringMatching(/^v22\.\d+\.\d+ 42\n$/),
        err: '',
      })
    })

    it('offers tools to other clients from an entry of its own, which shares its code and needs none of theirs', async () => {
      const script = `
        import { tool } from '@aexhq/brain'
        import { lintTools } from '@aexhq/brain/interop'
        import { z } from 'zod'
        const placed = tool({ name: 'a', description: 'b', input: z.object({ n: z.any() }), run: () => {} })()
        console.log(lintTools([placed]).map(({ provider, path }) => provider + path).join())`
      expect(await outcomeOf(process.execPath, ['--input-type=module', '-e', script], { cwd: client() })).toEqual({
        code: 0,
        out: 'openai_strict#/properties/n\n',
        err: '',
      })
    })

    it.each([
      ['nodenext', 'nodenext'],
      ['esnext', 'bundler'],
    ])(
      'has types that a strict consumer compiles with module %s, and that refuse a wrong outcome',
      async (module, resolution) => {
        const directory = join(client(), module)
        await mkdir(directory)
        const use = (status: string): string =>
          `import { tool, type Outcome, type SessionSummary } from '@aexhq/brain'\n` +
          `import { z } from 'zod'\n` +
          `import { defineAgentloop } from '@aexhq/brain/agentloop'\n` +
          `import { packageTools } from '@aexhq/brain/package'\n` +
          `export const turn = defineAgentloop((ctx) => ctx.callTool({ name: 'a', input: ctx.kv.get('n') }).sequence)\n` +
          `export const made: Promise<{ readonly version: string }> = packageTools()\n` +
          `export const outcome: Outcome = { status: '${status}', value: { words: 3 } }\n` +
          `export const placed = tool({ name: 'a', description: 'b', input: z.object({ n: z.number() }),\n` +
          `  options: z.object({ by: z.number() }), run: ({ n }, ctx) => ctx.finish(n * ctx.options.by) })({ by: 2 })\n` +
          `export const idOf = (summary: SessionSummary): string => summary.session_id\n` +
          `export { openaiChatTools } from '@aexhq/brain/interop'\n`
        await writeFile(join(directory, 'right.mts'), use('ok'))
        await writeFile(join(directory, 'wrong.mts'), use('fine'))
        const tsc = join(root, 'node_modules/.bin/tsc')
        const flags = ['--noEmit', '--strict', '--types', '', '--module', module, '--moduleResolution', resolution]
        expect(await outcomeOf(tsc, [...flags, 'right.mts'], { cwd: directory })).toMatchObject({ code: 0, out: '' })
        const refused = await outcomeOf(tsc, [...flags, 'wrong.mts'], { cwd: directory })
        expect(refused.out).toContain('error TS2322')
      },
    )
  })

  it('make the first tool of docs/typescript.md, command after command', async () => {
    const directory = join(folder, 'first-tool')
    await mkdir(directory)
    const page = await readFile(join(root, 'docs/typescript.md'), 'utf8')
    const [block] = fencedBlocks(page).filter(({ marks }) => marks.includes('first-tool'))
    const [installed, made, ...rest] = (block?.text ?? '').trim().split('\n')
    // What these tests have installed is what the first command installs.
    expect([installed, made, rest.length]).toEqual(['npm install -g @aexhq/brain-server', 'brain new ts hello', 4])
    const path = [dirname(brain()), PATH].join(delimiter)
    const bash = (script: string) =>
      outcomeOf('bash', ['-ec', script], { cwd: directory, env: { ...env, PATH: path, XDG_CACHE_HOME: folder } })
    expect(await bash(made ?? '')).toMatchObject({ code: 0 })
    const project = join(directory, 'hello/package.json')
    const written = await readFile(project, 'utf8')
    expect(written).toContain(`"@aexhq/brain": "^${manifest.version}"`)
    // It is not in the registry yet.
    await writeFile(project, written.replace(`^${manifest.version}`, `file:${tarball('brain')}`))
    const { code, out, err } = await bash(rest.join('\n'))
    expect(code, out + err).toBe(0)
    expect(out).toMatch(/pass 2\b/)
    expect(out).toMatch(/hello {2}dist\/hello\.wasm {2}1\.\d\d MB/)
    expect(out).toContain('2 passed, 0 failed')
  })

  describe('a package of tools', () => {
    const crm = (): string => join(folder, 'crm')
    const tsc = join(root, 'node_modules/.bin/tsc')
    const consumer = (options: string): string =>
      `import { lookup } from '@acme/crm'\nimport { brainEnv, type TypesOf } from '@aexhq/brain'\n` +
      `const value: TypesOf<typeof lookup>['output'] = null\n` +
      `const { executable } = lookup({ env: brainEnv({ name: 'box' }), ${options} })\n` +
      `console.log(JSON.stringify(executable), value, 'crm' in globalThis)\n`

    it('is made by its own build and `brain-tools`, and imported with its types and without its code', async () => {
      const exports = {
        '.': { 'brain-tool': './dist/tools.js', types: './dist/made/index.d.ts', default: './dist/made/index.js' },
      }
      const described = {
        name: '@acme/crm',
        version: '1.2.0',
        type: 'module',
        exports,
        files: ['dist'],
        dependencies: { '@aexhq/brain': manifest.version, zod: manifest.dependencies['zod'] },
      }
      await mkdir(join(crm(), 'src'), { recursive: true })
      await writeFile(join(crm(), 'package.json'), JSON.stringify(described))
      await writeFile(
        join(crm(), 'src/tools.ts'),
        `import { tool } from '@aexhq/brain'\nimport { z } from 'zod'\nObject.assign(globalThis, { crm: true })\n` +
          `export const lookup = tool({ name: 'lookup', description: 'Finds one customer', input: z.object({ id: z.string().trim() }),\n` +
          `  output: z.object({ value: z.string() }).nullable(), options: z.object({ prefix: z.string() }),\n` +
          `  run: ({ id }, ctx) => { console.log('looking'); return ctx.finish({ value: ctx.options.prefix + id }) } })\n`,
      )
      await symlink(join(client(), 'node_modules'), join(crm(), 'node_modules'))
      const flags = ['--strict', '--types', '', '--target', 'es2024', '--module', 'nodenext']
      expect(await outcomeOf(tsc, [...flags, '--outDir', 'dist', 'src/tools.ts'], { cwd: crm() })).toMatchObject({
        code: 0,
      })
      const brainTools = join(client(), 'node_modules/.bin/brain-tools')
      expect(await outcomeOf(brainTools, ['--check'], { cwd: crm() })).toMatchObject({ code: 1, err: '' })
      const { code, out } = await outcomeOf(brainTools, ['--json'], { cwd: crm() })
      expect({ code, made: JSON.parse(out) }).toMatchObject({
        code: 0,
        made: { tools: [{ name: 'lookup' }], files: [{}, {}] },
      })
      expect(await outcomeOf(brainTools, ['--check'], { cwd: crm() })).toEqual({
        code: 0,
        out: '@acme/crm@1.2.0\nlookup: "lookup" of "."\nunchanged ./dist/made/index.js\nunchanged ./dist/made/index.d.ts\n',
        err: '',
      })
      expect(await outcomeOf(brainTools, ['--wrong'], { cwd: crm() })).toMatchObject({ code: 64 })
      expect(await outcomeOf(brainTools, [folder], { cwd: crm() })).toMatchObject({
        code: 1,
        err: expect.stringMatching(/^Cannot package/),
      })
      const packed = await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: crm(), env })
      const given = join(folder, packed.stdout.trim())
      await run('npm', ['install', '--offline', '--no-audit', '--no-fund', given], { cwd: client(), env })
      await writeFile(join(client(), 'right.mts'), consumer(`prefix: 'c:'`))
      await writeFile(join(client(), 'wrong.mts'), consumer('prefix: 3'))
      expect(await outcomeOf(tsc, [...flags, 'right.mts'], { cwd: client() })).toMatchObject({ code: 0, out: '' })
      expect((await outcomeOf(tsc, [...flags, 'wrong.mts'], { cwd: client() })).out).toContain('error TS2322')
      const reference = { type: 'node_package', package: '@acme/crm', version: '1.2.0', entry: '.', export: 'lookup' }
      const configuration = { prefix: 'c:' }
      const placed = { type: 'descriptor', descriptor: { ...reference, configuration }, configuration }
      expect(await outcomeOf(process.execPath, ['right.mjs'], { cwd: client() })).toEqual({
        code: 0,
        out: `${JSON.stringify(placed)} null false\n`,
        err: '',
      })
    })

    it('is run by `brain-tool-runtime` where it is installed', async () => {
      const child = spawn(join(client(), 'node_modules/.bin/brain-tool-runtime'), [client()], { env })
      const implementation = {
        type: 'node_package',
        package: '@acme/crm',
        version: '1.2.0',
        entry: '.',
        export: 'lookup',
        configuration: { prefix: 'c:' },
      }
      const printed = text(child.stderr)
      const asked: unknown[] = []
      const end = await runToolProcess(child, {
        implementation,
        input: { id: ' 7 ' },
        sessionId: 'ses_1',
        environment: 'box',
        sequence: 4,
        service: async (method, input) => {
          asked.push([method, input])
          return 5
        },
      })
      expect({ end, asked, code: child.exitCode }).toEqual({
        end: { type: 'returned' },
        asked: [['finish', { status: 'ok', value: { value: 'c:7' } }]],
        code: 0,
      })
      expect(await printed).toBe('looking\n')
    })
  })

  describe('@aexhq/brain-server', () => {
    it('installs its eight dependencies and nothing that only a build needs', async () => {
      const installed = JSON.parse(
        await readFile(join(server(), 'node_modules/@aexhq/brain-server/package.json'), 'utf8'),
      ) as { dependencies: Record<string, string>; engines: { node: string } }
      expect(Object.keys(installed.dependencies).sort()).toEqual([
        '@ai-sdk/openai-compatible',
        '@modelcontextprotocol/server',
        'ajv',
        'commander',
        'fastify',
        'pino',
        'yaml',
        'zod',
      ])
      expect(installed.engines.node).toBe('>=26.10')
      const names = globSync('node_modules/{*,@*/*}', { cwd: server() })
      expect(names.filter((name) => /binaryen|bytecodealliance|jco|esbuild|typescript|vitest/.test(name))).toEqual([])
      let bytes = 0
      for (const file of globSync('node_modules/**/*', { cwd: server() }))
        bytes += (await stat(join(server(), file))).size
      const { size } = await stat(tarball('brain-server'))
      process.stdout.write(
        `brain-server: tarball ${(size / 1e6).toFixed(1)} MB, installed ${(bytes / 1e6).toFixed(1)} MB in ${names.length} folders\n`,
      )
      expect(bytes).toBeLessThan(40e6)
    })

    it('holds no path of the machine that built it', async () => {
      const files = globSync('node_modules/@aexhq/brain-server/**/*.{js,cjs,json,wasm,md}', { cwd: server() })
      expect(files.length).toBeGreaterThan(40)
      const contents = await Promise.all(files.map((file) => readFile(join(server(), file))))
      expect(files.filter((_, i) => contents[i]?.includes(root) === true)).toEqual([])
    })

    it('holds every module that its modules import, and the demo not at all', async () => {
      const lib = join(server(), 'node_modules/@aexhq/brain-server/lib')
      const files = globSync('**/*.js', { cwd: lib })
      const faults: string[] = []
      for (const file of files) {
        const text = await readFile(join(lib, file), 'utf8')
        for (const [, target = ''] of text.matchAll(/(?:^import|\bfrom) ['"]([^'"\n]+)['"];$/gm)) {
          const isOwn = target.startsWith('.') && files.includes(posix.join(posix.dirname(file), target))
          const [name = ''] = /^(?:@[^/]+\/)?[^/]+/.exec(target) ?? []
          if (!isOwn && !target.startsWith('node:') && !(name in manifest.dependencies))
            faults.push(`${file}: ${target}`)
        }
      }
      expect(faults).toEqual([])
      expect(files.filter((file) => file.includes('demo'))).toEqual([])
    })

    it('`brain --version` names the version of both packages', async () => {
      expect(await outcomeOf(brain(), ['--version'], { cwd: server() })).toEqual({
        code: 0,
        out: `${manifest.version}\n`,
        err: '',
      })
    })

    it('`brain mcp` says that there is no server where it is told to look', async () => {
      const to = ['--url', 'http://127.0.0.1:2', '--session', `ses_${'0'.repeat(32)}`]
      const refused = await outcomeOf(brain(), ['mcp', ...to], { cwd: server() })
      expect(refused).toMatchObject({ code: 1, out: '', err: expect.stringMatching(/^Cannot reach http:\/\/127/) })
    })

    it('`brain serve --check` answers 0 for a valid configuration and 1 with every problem for another', async () => {
      expect(await outcomeOf(brain(), ['serve', '--check'], { cwd: server() })).toMatchObject({ code: 0, err: '' })
      const bad = { ...env, BRAIN_LISTEN: 'nowhere', BRAIN_MAX_BOXES: '-1' }
      const refused = await outcomeOf(brain(), ['serve', '--check'], { cwd: server(), env: bad })
      expect(refused.code).toBe(1)
      expect(refused.err).toContain('BRAIN_LISTEN')
      expect(refused.err).toContain('BRAIN_MAX_BOXES')
    })

    it('`brain doctor` and `brain audit` look at the machine with what is in the package', async () => {
      const seen = await outcomeOf(brain(), ['doctor', '--json'], { cwd: server() })
      expect(seen).toMatchObject({ code: 0, err: '' })
      const attacked = await outcomeOf(brain(), ['audit'], { cwd: server() })
      expect(attacked).toMatchObject({ code: 0, out: expect.stringContaining('nothing got through'), err: '' })
    })

    it('`brain` says which Node it needs when started by an older one', async () => {
      const bin = join(server(), 'node_modules/@aexhq/brain-server/bin/brain.js')
      const script = `Object.defineProperty(process, 'versions', { value: { node: '20.20.2' } }); await import(${JSON.stringify(bin)})`
      expect(await outcomeOf(process.execPath, ['--input-type=module', '-e', script], { cwd: server() })).toEqual({
        code: 1,
        out: '',
        err: 'Cannot start brain: it needs Node 26.10 or newer, this is 20.20.2\n',
      })
    })

    it('`brain serve` admits a component, runs it in a box and exits 0 on SIGTERM', async () => {
      const child = spawn(brain(), ['serve', '--listen', '127.0.0.1:0', '--data-dir', join(folder, 'data')], {
        cwd: server(),
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      let errors = ''
      child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
      const exited = once(child, 'exit')
      try {
        const url = await listening(child)
        const { answer, isReady } = await firstCall(url)
        expect(isReady).toBe(true)
        expect(answer).toMatchObject({
          finished: true,
          outcome: { status: 'ok' },
          results: [{ output: { words: 3, unique: 2, top: [{ word: 'a', count: 2 }] }, is_error: false }],
        })
      } finally {
        child.kill('SIGTERM')
      }
      const [code] = (await exited) as [number | null]
      expect({ code, warnings: errors.match(/Warning/g) }, errors).toEqual({ code: 0, warnings: null })
    })
  })
})

async function listening(child: ChildProcess): Promise<string> {
  let out = ''
  for await (const chunk of child.stdout ?? []) {
    out += String(chunk)
    const match = /listens on (http:\S+?),/.exec(out)
    if (match?.[1] === undefined) continue
    child.stdout?.resume()
    return match[1]
  }
  throw new Error(`the installed server did not start: ${out}`)
}

async function firstCall(url: string): Promise<{ answer: unknown; isReady: boolean }> {
  const post = async (
    path: string,
    type: string,
    body: Uint8Array<ArrayBuffer> | string,
  ): Promise<Record<string, string>> => {
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': type, 'idempotency-key': path },
      body,
    })
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as Record<string, string>
  }
  const { status } = await fetch(`${url}/health/ready`)
  const { id } = await post('/v1/tools', 'application/wasm', new Uint8Array(await fixture('wordcount')))
  const session = await post(
    '/v1/sessions',
    'application/json',
    JSON.stringify({
      model: { provider: 'scripted', name: 'script', api_key: 'none', script: [{ text: 'done' }] },
      tools: [
        {
          name: 'wordcount',
          placements: {
            box: { implementation: { type: 'brain_component', entrypoint: 'run', id, configuration: {} } },
          },
        },
      ],
      environments: [{ name: 'box', driver: 'brain', lifecycle: 'automatic', configuration: {} }],
    }),
  )
  const calls = `/v1/sessions/${session['session_id']}/tools/wordcount/calls?wait=finished`
  const answer = await post(calls, 'application/json', JSON.stringify({ input: { text: 'a b a', top: 1 } }))
  return { answer, isReady: status === 204 }
}
