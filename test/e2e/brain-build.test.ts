import { execFile } from 'node:child_process'
import { access, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildTools } from '../../src/authoring/build/build-tools.ts'
import { findAuthorPackages } from '../../src/authoring/build/typescript/author-packages.ts'
import { bundleTool } from '../../src/authoring/build/typescript/bundle-tool.ts'
import { uploadAndCall } from '../support/upload-and-call.ts'
import { embeddedMetadata } from '../fixtures/reference/tool-metadata.ts'

const BRAIN = join(import.meta.dirname, '../../src/cli/brain.ts')

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'brain-build-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

type Ended = { readonly code: number; readonly out: string; readonly err: string }

const brain = (...args: readonly string[]): Promise<Ended> =>
  new Promise((resolve) => {
    execFile(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', BRAIN, ...args],
      { cwd: folder },
      (error, out, err) => resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err }),
    )
  })

const HEAD = `import { tool } from '@aexhq/brain'
import { z } from 'zod'
`
const declared = (body: string, name = 'a'): string =>
  `tool({ name: '${name}', description: 'b', input: z.object({}), run: ${body} })`

/** Builds a file with this text. */
async function build(text: string, file = 'tool.ts', signal?: AbortSignal): Promise<readonly string[]> {
  const path = join(folder, file)
  await writeFile(path, text)
  const lines: string[] = []
  const onProgress = (line: string): void => void lines.push(line)
  await buildTools(path, {
    outDirectory: join(folder, 'refused'),
    onProgress,
    env: process.env,
    ...(signal && { signal }),
  })
  return lines
}

describe('a source that no component can be made of', () => {
  it.each([
    [
      'a module of Node',
      `import { readFile } from 'node:fs/promises'\n${HEAD}export const a = ${declared('() => readFile')}`,
      /tool\.ts:1:26: "node:fs\/promises" is a module of Node, .* Rust or Python/,
    ],
    [
      'one without its prefix',
      `import path from 'path'\n${HEAD}export const a = ${declared('() => path')}`,
      /"path" is a module of Node/,
    ],
    [
      'a global of Node',
      `${HEAD}export const a = ${declared('() => process.env.HOME')}`,
      /tool\.ts uses process, .*options/,
    ],
    [
      'fetch',
      `${HEAD}export const a = ${declared('async () => fetch("http://x")')}`,
      /tool\.ts uses fetch, .*no network/,
    ],
    [
      'fetch by another way',
      `${HEAD}export const a = ${declared('async () => globalThis.fetch("http://x")')}`,
      /tool\.ts uses fetch/,
    ],
    [
      'the client',
      `import { Brain } from '@aexhq/brain'\n${HEAD}export const a = ${declared('() => new Brain({})')}`,
      /tool\.ts:1:10: "Brain" of @aexhq\/brain is for applications/,
    ],
    [
      'a module that is not there',
      `import x from './nowhere.ts'\n${HEAD}export const a = ${declared('() => x')}`,
      /tool\.ts:1:15: Could not resolve "\.\/nowhere\.ts"/,
    ],
    ['broken syntax', `${HEAD}export const a = {`, /tool\.ts:3:\d+: /],
    ['no tool', `${HEAD}export const a = 1`, /exports no tool: export one or more, declared with tool/],
    [
      'a tool that something else runs',
      `${HEAD}export const a = tool({ name: 'a', description: 'b', input: z.object({}), implementation: { type: 'x' } })`,
      /its tool a has an implementation and no run/,
    ],
    [
      'two tools of one name',
      `${HEAD}export const a = ${declared('() => 1')}\nexport const b = ${declared('() => 2')}`,
      /two tools named "a"/,
    ],
    [
      'a schema that is none',
      `${HEAD}export const a = tool({ name: 'a', description: 'b', input: z.object({ d: z.date() }), run: () => 1 })`,
      /Cannot declare tool "a": input\.d: Date cannot be represented/,
    ],
    ['a module that throws', `${HEAD}throw new RangeError('not today')`, /it cannot be loaded: RangeError: not today/],
    [
      'a module that waits',
      `${HEAD}const one = await Promise.resolve(1)\nexport const a = ${declared('() => one')}`,
      /tool\.ts:3:\d+: a component cannot wait at its top: wait in run/,
    ],
    [
      'a module that never settles',
      `${HEAD}await new Promise(() => {})\nexport const a = ${declared('() => 1')}`,
      /waits at its top for a promise that never settles/,
    ],
    [
      'too much to say',
      `${HEAD}export const a = tool({ name: 'a', description: 'b', input: z.object({ e: z.enum(Array.from({ length: 9000 }, (_, n) => 'value' + n)) }), run: () => 1 })`,
      /Cannot describe tool "a": .* 65536 are allowed/,
    ],
    [
      'randomness while it is loaded',
      `${HEAD}const id = crypto.randomUUID()\nexport const a = ${declared('() => id')}`,
      /Cannot get random values while the module is loaded: every call would have the same/,
    ],
  ])('is refused with the place and the remedy: %s', async (_what, text, message) => {
    const error = await build(text).then(
      () => new Error('it was built'),
      (reason: Error) => reason,
    )
    expect(error.message).toMatch(/^Cannot build "\/.*tool\.ts": /)
    expect(error.message).toMatch(message)
  })

  it('leaves nothing behind', async () => {
    await expect(access(join(folder, 'refused/a.wasm'))).rejects.toThrow('ENOENT')
  })

  it.each([
    ['nowhere', /there is no such file or folder/],
    ['empty', /the folder holds no tool; take a \.py/],
    ['types.d.ts', /it is no source of a tool; take a \.py/],
    ['tool.rb', /it is no source of a tool; take a \.py/],
  ])('is named with what is taken: %s', async (name, message) => {
    await mkdir(join(folder, 'empty'), { recursive: true })
    for (const file of ['types.d.ts', 'tool.rb']) await writeFile(join(folder, file), '')
    await expect(
      buildTools(join(folder, name), { outDirectory: folder, onProgress: () => {}, env: {} }),
    ).rejects.toThrow(message)
  })

  it('may use a package that knows how to do without what is not there, with a note', async () => {
    const source = join(folder, 'uses-package.ts')
    const text = "export const size = (text) => (typeof Buffer === 'undefined' ? text.length : Buffer.byteLength(text))"
    await mkdir(join(folder, 'node_modules/sizes'), { recursive: true })
    await writeFile(
      join(folder, 'node_modules/sizes/package.json'),
      '{"name":"sizes","type":"module","main":"index.js"}',
    )
    await writeFile(join(folder, 'node_modules/sizes/index.js'), text)
    await writeFile(source, `import { size } from 'sizes'\n${HEAD}export const a = ${declared('() => size("x")')}`)
    const { warnings } = await bundleTool(await findAuthorPackages(source), source, 'a')
    expect(warnings).toEqual([
      'node_modules/sizes/index.js uses Buffer, which a component has not: use Uint8Array, TextEncoder and TextDecoder',
    ])
  })

  it('is not built on when the command is stopped', async () => {
    const stopped = AbortSignal.abort(new Error('stopped'))
    await expect(build(`${HEAD}export const a = ${declared('() => 1')}`, 'tool.ts', stopped)).rejects.toThrow('stopped')
  })
})

describe('brain new and brain build', () => {
  it('make a project, and a component of it that says what it is', async () => {
    const made = await brain('new', 'ts', 'hello')
    expect(made).toMatchObject({ code: 0, err: '', out: expect.stringContaining('npm install') })
    const files = await readFile(join(folder, 'hello/package.json'), 'utf8')
    expect(files).toContain('"@aexhq/brain": "file:')
    const built = await brain('build', 'hello', '--out', 'out', '--json')
    expect(built.code, built.err).toBe(0)
    expect(built.err).toMatch(/building hello …\n {2}bundling hello\n {2}compiling hello\n/)
    const { tools } = JSON.parse(built.out) as { tools: { name: string; component: string; bytes: number }[] }
    const [tool] = tools
    const component = await readFile(join(folder, 'out/hello.wasm'))
    expect(tools).toEqual([
      { name: 'hello', component: expect.stringMatching(/out\/hello\.wasm$/), bytes: component.length },
    ])
    expect(embeddedMetadata(component)).toMatchObject([{ name: 'hello', input_schema: { required: ['text'] } }])
    expect(tool?.bytes).toBeLessThanOrEqual(1_700_000)
    expect(gzipSync(component).length).toBeLessThanOrEqual(1_000_000)
    expect(await uploadAndCall(join(folder, 'out/hello.wasm'), { text: 'a b a', most: 1 })).toEqual([
      { word: 'a', count: 2 },
    ])
    const tested = await brain('test', 'out/hello.wasm', '--cases', 'hello/cases.json')
    expect(tested).toMatchObject({ code: 0, out: expect.stringMatching(/ passed, 0 failed\n$/) })
  })

  it.each(['rust', 'python', 'ts'])('tell what comes next in %s as the README does, to the end', async (language) => {
    const { code, out } = await brain('new', language, `next-${language}`, '--json')
    const { next } = JSON.parse(out) as { next: string[] }
    const readme = await readFile(join(folder, `next-${language}/README.md`), 'utf8')
    const commands = readme.split('\n').map((line) => line.replace(/ {2,}#.*/, ''))
    expect(code).toBe(0)
    const [first, ...steps] = next.filter((line) => !line.startsWith('(cd '))
    expect(first).toBe(`cd next-${language}`)
    expect(commands).toEqual(expect.arrayContaining(steps))
    expect(next.at(-1)).toMatch(/^brain test dist\/next[-_](rust|python|ts)\.wasm/)
  })

  it('begin with the package where it has yet to be made', async () => {
    const packages = join(folder, 'packages')
    const next = async (name: string): Promise<string[]> =>
      (JSON.parse((await brain('new', 'ts', name, '--packages', packages, '--json')).out) as { next: string[] }).next
    await mkdir(join(packages, 'dist'), { recursive: true })
    expect((await next('before'))[0]).toBe(`(cd ${packages} && npm run build)`)
    const { dependencies } = JSON.parse(await readFile(join(folder, 'before/package.json'), 'utf8')) as {
      dependencies: Record<string, string>
    }
    await writeFile((dependencies['@aexhq/brain'] ?? '').replace('file:', ''), '')
    expect((await next('after'))[0]).toBe('cd after')
  })

  it.each([
    [['new', 'ts', 'hello'], /Cannot make "hello": the folder is there already, and not empty/],
    [['new', 'ts', '1x'], /Cannot make "1x": a name begins with a letter/],
    [['new', 'ts', '../x'], /Cannot make "\.\.\/x": a name begins with a letter/],
    [['new', 'ts', 'a'.repeat(65)], /at most 64/],
    [['new', 'go', 'x'], /Cannot make a project in "go": choose rust, python, ts/],
    [['new', 'ts', 'x', '--packages', 'nowhere'], /Cannot take packages from ".*nowhere": there is no such folder/],
    [['build', 'nowhere'], /Cannot build "nowhere": there is no such file or folder/],
  ])('refuse on standard error, with exit code 1: %j', async (args, message) => {
    const { code, out, err } = await brain(...args)
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toMatch(message)
    expect(err).not.toContain('    at ')
  })
})
