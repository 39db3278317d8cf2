import { createHash } from 'node:crypto'
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Python } from './find-python.ts'
import { runPython, type PythonRunOptions } from './run-python.ts'

/** The compiler that components are made with, as the extra `build` of brain-patterns has it. */
export const COMPONENTIZE_PY = 'componentize-py==0.25.1'

/**
 * A Python that has componentize-py: the author's own, or a virtual environment in the cache, made once for each version
 * of both.
 *
 * @returns its command
 * @throws Error `Cannot install componentize-py…`, with what Python or pip said
 */
export async function pythonCompiler(
  python: Python,
  cacheDirectory: string,
  options: PythonRunOptions,
): Promise<string> {
  if (python.hasCompiler) return python.command
  const key = createHash('sha256').update(`${python.version}\n${COMPONENTIZE_PY}`).digest('hex').slice(0, 16)
  const ready = join(cacheDirectory, `compiler-${key}`)
  if (!(await exists(ready))) {
    options.onLine?.(`Installing ${COMPONENTIZE_PY}`)
    await mkdir(cacheDirectory, { recursive: true })
    // Made aside and renamed, so that two builds at once, or one that is interrupted, leave no half of it.
    const aside = await mkdtemp(join(cacheDirectory, 'new-compiler-'))
    try {
      await install(python.command, join(aside, 'venv'), options)
      await rename(join(aside, 'venv'), ready).catch(async (error: unknown) => {
        if (!(await exists(ready))) throw error
      })
    } finally {
      await rm(aside, { recursive: true, force: true })
    }
  }
  return join(ready, 'bin/python')
}

async function install(python: string, venv: string, { env, signal }: PythonRunOptions): Promise<void> {
  const quiet = { env, ...(signal === undefined ? {} : { signal }) }
  const made = await runPython(python, ['-m', 'venv', venv], quiet)
  signal?.throwIfAborted()
  if (made.code !== 0)
    throw new Error(
      `Cannot install componentize-py: ${python} makes no virtual environment; install its venv and pip (on Debian and ` +
        `Ubuntu: apt-get install python3-venv)\n${[...made.lines, made.stderr].join('\n')}`.trim(),
    )
  const pip = ['-m', 'pip', '--disable-pip-version-check', '--quiet', 'install', COMPONENTIZE_PY]
  const installed = await runPython(join(venv, 'bin/python'), pip, quiet)
  signal?.throwIfAborted()
  if (installed.code !== 0) throw new Error(`Cannot install componentize-py: pip says\n${installed.stderr}`.trim())
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
