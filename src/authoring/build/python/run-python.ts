import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

export type PythonRun = {
  /** The exit code; undefined when the program cannot be started. */
  readonly code: number | undefined
  readonly lines: readonly string[]
  readonly stderr: string
}

export type PythonRunOptions = {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Hears each line of stdout as it comes. */
  readonly onLine?: (line: string) => void
  readonly signal?: AbortSignal
}

/** What a build may say on stderr, in UTF-16 units; the end of it has the reason. */
const MAX_STDERR = 64 * 1024

/**
 * Runs a program to its end and never rejects. An interrupted one is waited for: it ends its own children and removes what
 * it left half done.
 */
export function runPython(
  command: string,
  parameters: readonly string[],
  options: PythonRunOptions,
): Promise<PythonRun> {
  const { env, onLine = () => {}, signal } = options
  return new Promise((settle) => {
    const child = spawn(command, parameters, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...env } })
    const interrupt = (): void => void child.kill('SIGINT')
    if (signal?.aborted === true) interrupt()
    signal?.addEventListener('abort', interrupt, { once: true })
    const lines: string[] = []
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-MAX_STDERR)))
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line)
      onLine(line)
    })
    const end = (code: number | undefined): void => {
      signal?.removeEventListener('abort', interrupt)
      settle({ code, lines, stderr })
    }
    child.on('error', () => end(undefined))
    child.on('close', (code) => end(code ?? 1))
  })
}
