import { access } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { runPython } from './run-python.ts'

/** A Python that tools can be built with, and what it can import. */
export type Python = {
  readonly command: string
  /** `sys.version`: what is installed for one is not for another. */
  readonly version: string
  /** Whether it has `brain-patterns`, whether componentize-py. */
  readonly hasPackage: boolean
  readonly hasCompiler: boolean
}

/** There is no Python here that could build tools. The message says what to install. */
export class PythonMissing extends Error {
  override readonly name = 'PythonMissing'
}

const OLDEST = 10
const PROBE = `
import importlib.util, json, sys
def has(name):
    try:
        return importlib.util.find_spec(name) is not None
    except Exception:
        return False
print(json.dumps([list(sys.version_info[:2]), sys.version, has("brain.build"), has("componentize_py")]))`
const REMEDY =
  'install Python 3.10 or newer with venv and pip (on Debian and Ubuntu: apt-get install python3 python3-venv)'

type Env = Readonly<Record<string, string | undefined>>

/** The virtual environment that the author has activated, else the nearest `.venv` above the source, else the PATH. */
async function candidates(source: string, env: Env): Promise<string[]> {
  const commands = env['VIRTUAL_ENV'] === undefined ? [] : [join(env['VIRTUAL_ENV'], 'bin/python')]
  for (let folder = dirname(source); ; folder = dirname(folder)) {
    const python = join(folder, '.venv/bin/python')
    const isThere = await access(python).then(
      () => true,
      () => false,
    )
    if (isThere) commands.push(python)
    if (isThere || folder === dirname(folder)) break
  }
  return [...commands, 'python3', 'python']
}

/**
 * Finds the Python of an author: the first of the candidates that is new enough.
 *
 * @throws PythonMissing when there is none
 */
export async function findPython(source: string, env: Env): Promise<Python> {
  const reasons: string[] = []
  for (const command of await candidates(source, env)) {
    const { code, lines, stderr } = await runPython(command, ['-c', PROBE], { env })
    if (code === undefined) continue
    if (code !== 0) {
      reasons.push(`${command} says: ${stderr.trim().split('\n').at(-1) ?? ''}`)
      continue
    }
    const facts = JSON.parse(lines.at(-1) ?? '') as [[number, number], string, boolean, boolean]
    const [[major, minor], version, hasPackage, hasCompiler] = facts
    if (major === 3 && minor >= OLDEST) return { command, version, hasPackage, hasCompiler }
    reasons.push(`${command} is Python ${major}.${minor}`)
  }
  const found = reasons.length === 0 ? 'there is no python3 on the PATH' : reasons.join(', and ')
  throw new PythonMissing(`Cannot build Python tools: ${found}; ${REMEDY}`)
}
