import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A program of ours or of a page as somebody starts it, with a terminal. */
export class ExampleService implements AsyncDisposable {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #exited: Promise<unknown>
  printed = ''
  url = ''
  #wake: () => void = () => undefined

  private constructor(command: readonly string[], env: Readonly<Record<string, string>>) {
    const [program = '', ...parameters] = command
    const given = { PATH: process.env['PATH'] ?? '', NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '' }
    this.#child = spawn(program, parameters, { cwd: ROOT, env: { ...given, ...env }, stdio: 'pipe' })
    const hear = (text: string): void => {
      this.printed += text
      this.#wake()
    }
    this.#child.stdout.setEncoding('utf8').on('data', hear)
    this.#child.stderr.setEncoding('utf8').on('data', hear)
    this.#exited = once(this.#child, 'close').then(() => this.#wake())
    // Somebody who types to a program that has ended.
    this.#child.stdin.on('error', () => undefined)
  }

  /** Starts it, without waiting. */
  static run(command: readonly string[], env: Readonly<Record<string, string>> = {}): ExampleService {
    return new ExampleService(command, env)
  }

  /** Starts it, and waits until it says where it listens. */
  static async listening(
    command: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<ExampleService> {
    const service = new ExampleService(command, env)
    service.url = (await service.prints(/listens on (http:\/\/[\w.:]+)/))[1] ?? ''
    return service
  }

  /** Waits until it has printed something. @throws Error when it ends before */
  async prints(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.printed)
      if (found !== null) return found
      if (this.#child.exitCode !== null) throw new Error(`it ended without ${String(pattern)}:\n${this.printed}`)
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  type(line: string): void {
    this.#child.stdin.write(`${line}\n`)
  }

  /** @returns the exit code */
  async ended(): Promise<number | null> {
    await this.#exited
    return this.#child.exitCode
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    this.#child.kill(signal)
    return this.ended()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('SIGKILL')
  }
}
