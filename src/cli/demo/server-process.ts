import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export type ServerStart = {
  readonly dataDirectory: string
  /** Gets the server's log; made when it is not there. */
  readonly logFile: string
  /** Settings beside the ones that every such server has; variables `BRAIN_*` of our own environment do not count. */
  readonly settings: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  /** Flags of Node, for a server that is looked into. */
  readonly nodeFlags?: readonly string[]
  /** The file of its host config. */
  readonly hostConfig?: string
}

/** A server of this checkout in a process of its own, on a free loopback port. */
export type ServerProcess = {
  readonly url: string
  readonly pid: number
  /** Resolves with how it ended. */
  readonly ended: Promise<string>
  /** SIGTERM, and SIGKILL when that is not enough. Resolves after the end. */
  stop(): Promise<void>
  /** SIGKILL; returns at once. */
  kill(): void
  /** Lets it live on after us. */
  release(): void
}

const MAIN = fileURLToPath(new URL('../../main.ts', import.meta.url))
const COMMAND = fileURLToPath(new URL('../brain.ts', import.meta.url))
const START_LINE = /^brain listens on (http:\/\/\S+),/
const START_MS = 60_000
const STOP_MS = 5000
const LOG_TAIL = 4000

/**
 * Starts a server and waits until it listens.
 * @throws Error with the end of its log when it does not come up
 */
export async function startServer(start: ServerStart): Promise<ServerProcess> {
  const child = spawnServer(start)
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
  })
  const url = await Promise.race([
    listening(child),
    ended.then((how) => failed(how, start.logFile)),
    aborted(start.signal),
  ]).catch(async (error: unknown) => {
    child.kill('SIGKILL')
    await ended
    throw error
  })
  return {
    url,
    pid: child.pid ?? 0,
    ended,
    kill: () => void child.kill('SIGKILL'),
    release: () => {
      child.stdout?.destroy()
      child.unref()
    },
    async stop() {
      child.kill('SIGTERM')
      const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
      await ended
      clearTimeout(late)
    },
  }
}

function spawnServer({ dataDirectory, logFile, settings, nodeFlags = [], hostConfig }: ServerStart): ChildProcess {
  const program = hostConfig === undefined ? [MAIN] : [COMMAND, 'serve', '--config', hostConfig]
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('BRAIN_'))
  const log = openSync(logFile, 'a', 0o600)
  try {
    // In a group of its own: Ctrl-C is for us, and we stop it in order.
    return spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...nodeFlags, ...program], {
      detached: true,
      stdio: ['ignore', 'pipe', log],
      env: {
        ...Object.fromEntries(inherited),
        BRAIN_LISTEN: '127.0.0.1:0',
        BRAIN_DATA_DIR: dataDirectory,
        BRAIN_SCRIPTED_MODEL: '1',
        ...settings,
      },
    })
  } finally {
    closeSync(log)
  }
}

function listening(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    if (child.stdout === null) return
    createInterface({ input: child.stdout }).on('line', (line) => {
      const url = START_LINE.exec(line)?.[1]
      if (url !== undefined) resolve(url)
    })
  })
}

function failed(how: string, logFile: string): never {
  const words = readFileSync(logFile, 'utf8').slice(-LOG_TAIL).trim()
  throw new Error(`Cannot start the server: it ended with ${how}${words === '' ? '' : `\n${words}`}`)
}

function aborted(given: AbortSignal | undefined): Promise<never> {
  const late = AbortSignal.timeout(START_MS)
  const signal = given === undefined ? late : AbortSignal.any([given, late])
  return new Promise((_resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })
}
