/**
 * Builds Python tools from Node, for the demo, the bench and the tests: `build.py` does the work, and a component is
 * kept in the cache directory under the digest of everything that it is made of.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { access, mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const HERE = fileURLToPath(new URL('.', import.meta.url))
const BUILD_SCRIPT = join(HERE, 'build.py')
const SHARED_SOURCES = [
  BUILD_SCRIPT,
  join(HERE, 'brain_guest.py'),
  join(HERE, 'requirements.txt'),
  join(HERE, '../wit/tool.wit'),
]
const PROBE = 'import sys, ensurepip, venv; print("%d.%d" % sys.version_info[:2]); sys.exit(sys.version_info < (3, 10))'
const REMEDY =
  'install Python 3.10 or newer with venv and pip (on Debian and Ubuntu: apt-get install python3 python3-venv)'

/** @type {import('./build.d.mts').buildPythonTool} */
export async function buildPythonTool(tool, { cacheDirectory, onProgress = () => {}, signal }) {
  const folder = resolve(HERE, tool)
  const name = basename(folder)
  const component = join(cacheDirectory, `${name}-${await digestOf(folder)}.wasm`)
  if (await exists(component)) return { built: true, component, fromCache: true }

  const python = await findPython()
  if (!python.found) return { built: false, reason: python.reason }
  await mkdir(cacheDirectory, { recursive: true })
  const aside = await mkdtemp(join(cacheDirectory, 'build-'))
  try {
    await runBuildScript(python.command, ['--cache', cacheDirectory, '--out', aside, folder], { onProgress, signal })
    await rename(join(aside, `${name}.wasm`), component)
  } finally {
    await rm(aside, { recursive: true, force: true })
  }
  return { built: true, component, fromCache: false }
}

/** @type {import('./build.d.mts').preparePythonCompiler} */
export async function preparePythonCompiler({ cacheDirectory, onProgress = () => {} }) {
  const python = await findPython()
  if (!python.found) return { ready: false, reason: python.reason }
  const lines = await runBuildScript(python.command, ['--cache', cacheDirectory, '--compiler-only'], { onProgress })
  return { ready: true, python: /** @type {string} */ (lines.at(-1)) }
}

async function findPython() {
  const reasons = []
  for (const command of ['python3', 'python']) {
    const { code, stdout, stderr } = await run(command, ['-c', PROBE])
    if (code === 0) return { found: true, command }
    if (code !== undefined) reasons.push(stdout ? `${command} is Python ${stdout.trim()}` : lastLine(stderr))
  }
  const found = reasons.length === 0 ? 'there is no python3 on the PATH' : reasons.join(', and ')
  return { found: false, reason: `Cannot build Python tools: ${found}; ${REMEDY}` }
}

/** @returns {Promise<string[]>} the lines that the script printed, each of which was progress while it ran */
async function runBuildScript(python, parameters, { onProgress, signal }) {
  const lines = []
  const onLine = (line) => {
    lines.push(line)
    onProgress(line)
  }
  const { code, stderr } = await run(python, [BUILD_SCRIPT, ...parameters], { onLine, signal })
  signal?.throwIfAborted()
  if (code !== 0) throw new Error(stderr.trim() || `Cannot build Python tools: ${python} ended with ${code}`)
  return lines
}

/**
 * Never rejects: a program that cannot be started ends with the code `undefined`. An interrupted one is waited for: it
 * ends its own children and removes what it left half done.
 */
function run(command, parameters, { onLine = () => {}, signal } = {}) {
  return new Promise((settle) => {
    const child = spawn(command, parameters, { stdio: ['ignore', 'pipe', 'pipe'] })
    const interrupt = () => child.kill('SIGINT')
    if (signal?.aborted) interrupt()
    signal?.addEventListener('abort', interrupt, { once: true })
    const output = { stdout: '', stderr: '' }
    child.stderr.setEncoding('utf8').on('data', (text) => (output.stderr += text))
    createInterface({ input: child.stdout }).on('line', (line) => {
      output.stdout += `${line}\n`
      onLine(line)
    })
    const end = (code) => {
      signal?.removeEventListener('abort', interrupt)
      settle({ code, ...output })
    }
    child.on('error', () => end(undefined))
    child.on('close', (code) => end(code ?? 1))
  })
}

async function digestOf(folder) {
  const names = await readdir(folder, { recursive: true })
  const own = names.filter((name) => /\.(?:py|json)$/.test(name)).toSorted()
  const digest = createHash('sha256')
  for (const path of [...SHARED_SOURCES, ...own.map((name) => join(folder, name))]) {
    const content = await readFile(path)
    digest.update(`${basename(path)} ${content.length}\n`).update(content)
  }
  return digest.digest('hex').slice(0, 16)
}

const lastLine = (text) => text.trim().split('\n').at(-1)

const exists = (path) =>
  access(path).then(
    () => true,
    () => false,
  )
