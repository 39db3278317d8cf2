import { execFile } from 'node:child_process'
import { access, glob, mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest'
import { CACHE } from '../fixtures/components.ts'

const run = promisify(execFile)
const PACKAGE = fileURLToPath(new URL('../../examples-python/brain-patterns', import.meta.url))
const BACKEND = 'hatchling==1.29.0'
const TYPE_CHECKER = 'mypy==1.19.0'
const PROBE = 'import sys; print("%d.%d" % sys.version_info[:2])'

type Interpreter = { readonly command: string; readonly minor: number }

/** Every Python 3.10 or newer here, on the PATH or of pyenv, one of each version, the oldest first. */
async function interpreters(): Promise<Interpreter[]> {
  const pyenv = process.env['PYENV_ROOT'] ?? join(homedir(), '.pyenv')
  const installed = await Array.fromAsync(glob(join(pyenv, 'versions/*/bin/python3')))
  const versioned = [10, 11, 12, 13, 14].map((minor) => `python3.${minor}`)
  const found = new Map<number, Interpreter>()
  const probes = ['python3', 'python', ...versioned, ...installed].map(async (command) => {
    const answer = await run(command, ['-c', PROBE]).catch(() => undefined)
    const minor = Number(/^3\.(\d+)\n$/.exec(answer?.stdout ?? '')?.[1] ?? 0)
    if (minor >= 10) found.set(minor, { command, minor })
  })
  await Promise.all(probes)
  return [...found.values()].toSorted((one, other) => one.minor - other.minor)
}

/** What Python's own runner says: nothing is written beside the sources. */
async function unittests(command: string): Promise<string> {
  const env = {
    ...process.env,
    PYTHONPATH: 'src',
    PYTHONDONTWRITEBYTECODE: '1',
    PYTHONWARNINGS: 'error::ResourceWarning',
  }
  const suite = ['-m', 'unittest', 'discover', '--start-directory', 'tests', '--top-level-directory', '.']
  const { stderr } = await run(command, suite, { cwd: PACKAGE, env }).catch((failure: { stderr: string }) => failure)
  return stderr
}

/** A Python of its own that has a program; kept between runs. */
async function pythonWith(program: string, { command, minor }: Interpreter): Promise<string> {
  const folder = join(CACHE, `python/${program}-3.${minor}`)
  const python = join(folder, 'bin/python')
  const isThere = await access(join(folder, 'bin', program.replace(/=.*/, ''))).then(
    () => true,
    () => false,
  )
  if (!isThere) {
    await run(command, ['-m', 'venv', '--clear', folder])
    await run(python, ['-m', 'pip', '--quiet', '--disable-pip-version-check', 'install', program])
  }
  return python
}

let found: Interpreter[]
let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'brain-python-package-'))
  found = await interpreters()
})
afterAll(() => rm(directory, { recursive: true, force: true }))

function someOf(context: TestContext): readonly [Interpreter, ...Interpreter[]] {
  const [oldest, ...others] = found
  if (oldest !== undefined) return [oldest, ...others.slice(-1)]
  const reason = 'there is no Python 3.10 or newer here'
  if (process.env['CI'] === 'true') throw new Error(`NOT CHECKED, and CI must: ${reason}`)
  process.stderr.write(`\nNOT CHECKED: brain-patterns. ${reason}\n\n`)
  return context.skip(reason)
}

describe('brain-patterns', () => {
  it('passes its own tests on the oldest and the newest Python here', async (context) => {
    const chosen = someOf(context)
    const said = await Promise.all(chosen.map(({ command }) => unittests(command)))
    for (const [index, text] of said.entries())
      expect(text, `Python 3.${chosen[index]?.minor}`).toMatch(/\nRan 1[1-9]\d tests in [\d.]+s\n\nOK\n$/)
  })

  it('is packed whole, and is what an installation imports', async (context) => {
    const newest = someOf(context).at(-1)!
    const python = await pythonWith(BACKEND, newest)
    const dist = join(directory, 'dist')
    await run(python, ['-m', 'hatchling', 'build', '--directory', dist], { cwd: PACKAGE })
    const [sources = '', wheel = ''] = (await readdir(dist)).toSorted((one) => (one.endsWith('.whl') ? 1 : -1))
    expect([sources, wheel]).toEqual(['brain_patterns-0.1.0.tar.gz', 'brain_patterns-0.1.0-py3-none-any.whl'])
    const site = join(directory, 'site')
    const install = ['-m', 'pip', '--quiet', '--disable-pip-version-check', 'install', '--no-index', '--no-deps']
    await run(python, [...install, '--target', site, join(dist, wheel)])
    const [own, installed] = await Promise.all([filesOf(join(PACKAGE, 'src/brain')), filesOf(join(site, 'brain'))])
    expect(installed).toEqual(own)
    expect(own).toEqual(expect.arrayContaining(['py.typed', 'build/tool.wit', 'patterns/tools.py']))
    const { stdout: packed } = await run('tar', ['-tzf', join(dist, sources)])
    for (const file of ['pyproject.toml', 'LICENSE', 'README.md', 'src/brain/py.typed', 'tests/test_tool_specs.py'])
      expect(packed.split('\n')).toContain(`brain_patterns-0.1.0/${file}`)

    const program = `
from importlib.metadata import requires, version
from brain.patterns import tool, ToolSpec, ReActAgent, tools_to_dict, tools_to_openai_schemas
from brain.patterns.tools import ToolSpec as same
from brain.providers import LocalEchoProvider
assert same is ToolSpec
print(version("brain-patterns"), [one for one in requires("brain-patterns") if "extra ==" not in one])
print(ReActAgent(tools={}, provider=LocalEchoProvider()).run("task").answer)`
    const { stdout } = await run(newest.command, ['-c', program], {
      cwd: directory,
      env: { ...process.env, PYTHONPATH: site },
    })
    expect(stdout).toBe('0.1.0 []\ntask\n')
  })

  if (process.env['BRAIN_SOAK'] === '1')
    it('is typed without a gap for every Python that it is for', async (context) => {
      const python = await pythonWith(TYPE_CHECKER, someOf(context).at(-1)!)
      for (const version of ['3.10', '3.12', '3.14']) {
        const check = ['-m', 'mypy', '--python-version', version, '--cache-dir', join(directory, 'mypy')]
        const { stdout } = await run(python, check, { cwd: PACKAGE })
        expect(stdout, version).toMatch(/^Success: no issues found in \d+ source files\n$/)
      }
    })

  it('compiles for the world that Brain has', async () => {
    const [own, world] = await Promise.all([
      readFile(join(PACKAGE, 'src/brain/build/tool.wit'), 'utf8'),
      readFile(fileURLToPath(new URL('../../wit/tool.wit', import.meta.url)), 'utf8'),
    ])
    expect(own).toBe(world)
  })
})

async function filesOf(folder: string): Promise<string[]> {
  const files = await Array.fromAsync(glob('**/*.*', { cwd: folder }))
  return files.filter((file) => !file.includes('__pycache__')).toSorted()
}
