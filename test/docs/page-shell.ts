import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { dirname, delimiter, join } from 'node:path'
import { root } from './pages.ts'

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}

const MARK = '--- block ended with'

/**
 * The terminals of somebody who follows a page: one shell that runs its blocks in order, and one for each block that
 * keeps running. Everything happens at the top of the checkout; only the address, the data directory and a folder for
 * the reader's files come from outside, through variables that the pages name.
 */
export class PageShell implements AsyncDisposable {
  readonly #env: NodeJS.ProcessEnv
  readonly #shell: ChildProcess
  readonly #servers: ChildProcess[] = []
  #out = ''
  #wake: () => void = () => {}

  constructor(directory: string, port: number) {
    this.#env = {
      HOME: process.env['HOME'] ?? directory,
      PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter),
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '',
      BRAIN_LISTEN: `127.0.0.1:${port}`,
      BRAIN_URL: `http://127.0.0.1:${port}`,
      BRAIN_DATA_DIR: join(directory, 'data'),
      TMPDIR: directory,
    }
    this.#shell = this.#spawn(['--noprofile', '--norc'])
    const hear = (text: string): void => {
      this.#out += text
      this.#wake()
    }
    this.#shell.stdout?.setEncoding('utf8').on('data', hear)
    this.#shell.stderr?.setEncoding('utf8').on('data', hear)
    this.#shell.on('exit', () => this.#wake())
  }

  #spawn(args: readonly string[]): ChildProcess {
    // A group of its own, so that what a block started ends with it.
    return spawn('bash', args, { cwd: root, env: this.#env, stdio: ['pipe', 'pipe', 'pipe'], detached: true })
  }

  /** @returns what the block printed, and its exit code */
  async run(text: string): Promise<{ out: string; code: number }> {
    this.#out = ''
    this.#shell.stdin?.write(`{ set -euo pipefail\n${text}\n} 2>&1; set +e; echo; echo "${MARK} $?"\n`)
    for (;;) {
      const end = new RegExp(`\n?\n${MARK} (\\d+)\n`).exec(this.#out)
      if (end !== null) return { out: this.#out.slice(0, end.index), code: Number(end[1]) }
      // `set -e` ends the shell at the first command that fails, as the reader would stop there.
      if (this.#shell.exitCode !== null) return { out: this.#out, code: this.#shell.exitCode }
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** Starts a block that keeps running. @returns once it printed that the server listens */
  async start(text: string): Promise<string> {
    const child = this.#spawn(['--noprofile', '--norc', '-c', text])
    this.#servers.push(child)
    let out = ''
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (out += chunk))
    for await (const chunk of child.stdout ?? []) {
      out += String(chunk)
      if (!out.includes('brain listens on')) continue
      child.stdout?.resume()
      return out
    }
    throw new Error(`nothing listens after: ${text}\n${out}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of [this.#shell, ...this.#servers]) {
      if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) continue
      const exited = once(child, 'exit')
      process.kill(-child.pid, 'SIGTERM')
      await exited
    }
  }
}
