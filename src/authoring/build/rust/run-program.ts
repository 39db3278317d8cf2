import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export type Program = {
  readonly command: string
  readonly parameters: readonly string[]
  readonly directory: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly signal?: AbortSignal | undefined
  readonly onOutput?: (line: string) => void
  readonly onError?: (line: string) => void
}

/** How a program ended; `undefined` when there is no such program. */
export type ProgramEnd = { readonly code: number | null; readonly signal: NodeJS.Signals | null } | undefined

/**
 * Runs a program and hands on what it writes, line by line. Aborted, it is killed with all that it started.
 *
 * @throws the reason of the signal; Error when the program is there and cannot be started
 */
export async function runProgram(program: Program): Promise<ProgramEnd> {
  program.signal?.throwIfAborted()
  const child = spawn(program.command, program.parameters, {
    cwd: program.directory,
    env: program.env,
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own, so that compilers which it started end with it.
    detached: process.platform !== 'win32',
  })
  const kill = (): void => killGroup(child.pid)
  program.signal?.addEventListener('abort', kill)
  try {
    createInterface({ input: child.stdout }).on('line', program.onOutput ?? ignore)
    createInterface({ input: child.stderr }).on('line', program.onError ?? ignore)
    const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
    program.signal?.throwIfAborted()
    return { code, signal }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  } finally {
    program.signal?.removeEventListener('abort', kill)
  }
}

const ignore = (): void => undefined

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}
