import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest'
import { buildTools } from '../../src/authoring/build/build-tools.ts'
import { newProject } from '../../src/authoring/new-project.ts'
import { buildPython } from '../../src/authoring/build/python.ts'
import { findPython, PythonMissing, type Python } from '../../src/authoring/build/python/find-python.ts'
import { COMPONENTIZE_PY } from '../../src/authoring/build/python/python-compiler.ts'
import { PACKAGE_IN_CHECKOUT } from '../../src/authoring/build/python/python-package.ts'
import { finishedValue, runComponent } from '../fixtures/reference/run-component.ts'
import { uploadAndCall } from '../support/upload-and-call.ts'
import { embeddedMetadata } from '../fixtures/reference/tool-metadata.ts'

const run = promisify(execFile)

const BRAIN = [
  '--disable-warning=ExperimentalWarning',
  fileURLToPath(new URL('../../src/cli/brain.ts', import.meta.url)),
]

const SEVERAL = `
import asyncio
from brain.patterns import tool

async def later(n):
    await asyncio.sleep(0.01)
    return n

@tool("Slow")
async def slow(n: int) -> list[int]:
    return await asyncio.gather(later(n), later(n + 1))

@tool("Half")
def half(n: int) -> float:
    return n / 2
`

let directory: string
let folder: string
let python: Python | PythonMissing
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'brain-python-template-'))
  const made = await newProject('python', 'my-tool', { directory, version: '0.1.0' })
  folder = made.directory
  python = await findPython(join(folder, 'tool.py'), process.env).catch((error: PythonMissing) => error)
})
afterAll(() => rm(directory, { recursive: true, force: true }))

function pythonHere(context: TestContext): Python {
  if (!(python instanceof PythonMissing)) return python
  if (process.env['CI'] === 'true') throw new Error(`NOT CHECKED, and CI must: ${python.message}`)
  process.stderr.write(`\nNOT CHECKED: the template of Python. ${python.message}\n\n`)
  return context.skip(python.message)
}

const quietly = { onProgress: () => {}, env: process.env }

describe('the template of Python', () => {
  it('passes its own tests as it is', async (context) => {
    const env = { ...process.env, PYTHONPATH: PACKAGE_IN_CHECKOUT }
    const { stderr } = await run(pythonHere(context).command, ['-m', 'unittest'], { cwd: folder, env })
    expect(stderr).toMatch(/Ran 2 tests in [\d.]+s\n\nOK\n$/)
  })

  it('becomes a component that does what its cases say', async (context) => {
    pythonHere(context)
    const lines: string[] = []
    const outDirectory = join(folder, 'dist')
    const source = join(folder, 'tool.py')
    const built = await buildTools(source, { ...quietly, outDirectory, onProgress: (line) => void lines.push(line) })
    const component = join(outDirectory, 'my-tool.wasm')
    expect(built).toEqual([{ name: 'my-tool', component, bytes: (await stat(component)).size }])
    expect(lines.at(-1)).toMatch(/^Compiled my-tool\.wasm \(\d+\.\d MB, \d+\.\d s\)$/)
    expect(await readdir(outDirectory)).toEqual(['my-tool.wasm'])
    expect(embeddedMetadata(await readFile(component))[0]).toMatchObject({
      name: 'my-tool',
      input_schema: { properties: { name: { type: 'string', minLength: 1 } }, required: ['name'] },
      output_schema: { required: ['text', 'letters'] },
    })
    const test = await run(process.execPath, [...BRAIN, 'test', component, '--cases', join(folder, 'cases.json')], {
      env: { ...process.env, XDG_CACHE_HOME: join(folder, 'cache') },
    })
    expect(test.stdout).toMatch(/\n3 passed, 0 failed\n$/)
    expect(await uploadAndCall(component, { name: 'Ada' })).toEqual({ text: 'Hello, Ada!', letters: 3 })
  })
})

describe('a build of Python', () => {
  const build = (source: string, env = process.env) =>
    buildPython(join(folder, source), { ...quietly, outDirectory: join(folder, 'out'), env })

  it('names what is wrong with a source', async (context) => {
    pythonHere(context)
    await writeFile(join(folder, 'empty.py'), 'x = 1\n')
    await expect(build('empty.py')).rejects.toThrow(
      'Cannot build "empty.py": there is no tool in it. Decorate a function with @tool("what it does")',
    )
    await expect(build('nowhere.py')).rejects.toThrow(/^Cannot build ".*nowhere\.py": there is no such Python file$/)
  })

  if (process.env['BRAIN_SOAK'] === '1')
    it('makes a component of each tool of a file, async ones too', async (context) => {
      pythonHere(context)
      const outDirectory = join(folder, 'several')
      await writeFile(join(folder, 'several.py'), SEVERAL)
      const built = await buildPython(join(folder, 'several.py'), { ...quietly, outDirectory })
      expect(built.map(({ name }) => name)).toEqual(['slow', 'half'])
      const [slow, half] = built.map(({ component }) => component) as [string, string]
      expect(finishedValue(await runComponent({ component: slow, input: { n: 3 } }))).toEqual([3, 4])
      expect(finishedValue(await runComponent({ component: half, input: { n: 3 } }))).toBe(1.5)
    })

  it('names what is missing on the machine', async () => {
    await expect(build('tool.py', { PATH: folder })).rejects.toThrow(
      /^Cannot build Python tools: there is no python3 on the PATH; install Python 3\.10 or newer/,
    )
    await writeFile(join(folder, 'python3'), '#!/bin/sh\necho "I am broken" >&2\nexit 3\n', { mode: 0o755 })
    const broken = build('tool.py', { PATH: `${folder}:/nowhere` })
    await expect(broken).rejects.toThrow('Cannot build Python tools: python3 says: I am broken; install Python 3.10')
    await rm(join(folder, 'python3'))
  })

  it('takes the virtual environment that is active, else the one above the source', async (context) => {
    const { command } = pythonHere(context)
    const [active, above] = [join(folder, 'active'), join(folder, '.venv')]
    await run(command, ['-m', 'venv', '--without-pip', active])
    await run(command, ['-m', 'venv', '--without-pip', above])
    const found = (env: Record<string, string | undefined>) => findPython(join(folder, 'deep/tool.py'), env)
    expect((await found({ ...process.env, VIRTUAL_ENV: active })).command).toBe(join(active, 'bin/python'))
    expect((await found({ ...process.env, VIRTUAL_ENV: undefined })).command).toBe(join(above, 'bin/python'))
    await rm(above, { recursive: true })
  })

  it('stops when it is told to, and leaves nothing', async (context) => {
    pythonHere(context)
    const control = new AbortController()
    const outDirectory = join(folder, 'stopped')
    const building = buildPython(join(folder, 'tool.py'), {
      ...quietly,
      outDirectory,
      signal: control.signal,
      onProgress: (line) => (line.startsWith('Compiling') ? control.abort(new Error('enough')) : undefined),
    })
    await expect(building).rejects.toThrow('enough')
    expect(await readdir(outDirectory)).toEqual([])
  })

  it('installs the compiler that the package names', async () => {
    const project = await readFile(join(PACKAGE_IN_CHECKOUT, '../pyproject.toml'), 'utf8')
    expect(project).toContain(`build = ["${COMPONENTIZE_PY}"]`)
    expect(await readFile(join(folder, 'requirements.txt'), 'utf8')).toMatch(
      /^brain-patterns @ file:\/\/\/.*brain-patterns\n$/,
    )
  })
})
