import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdtemp, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { TestProject } from 'vitest/node'
import { CACHE } from '../fixtures/components.ts'

const run = promisify(execFile)

export const EXAMPLES = fileURLToPath(new URL('../../examples-rust', import.meta.url))
export const PINNED = process.env['BRAIN_RUST_TOOLCHAIN'] ?? `${CACHE}/rust-toolchain`
const GUESTS = fileURLToPath(new URL('../fixtures/guests-rust', import.meta.url))

/** A build of the committed components that goes on beside the tests. */
export type RustBuild = {
  /** `pinned` gives the committed bytes; another compiler gives a component that works alike. */
  readonly compiler: 'pinned' | 'stock'
  /** `components/` and `log`, and `end` once it is over. */
  readonly directory: string
  /** The leader of its process group. */
  readonly pid: number
}

declare module 'vitest' {
  interface ProvidedContext {
    /** `undefined` where there is no Rust for wasm32-wasip2. */
    rustBuild: RustBuild | undefined
  }
}

async function findCompiler(): Promise<RustBuild['compiler'] | undefined> {
  const exists = (path: string): Promise<boolean> =>
    access(path).then(
      () => true,
      () => false,
    )
  if (await exists(`${PINNED}/complete`)) return 'pinned'
  const query = ['--print', 'target-libdir', '--target', 'wasm32-wasip2']
  const library = await run('rustc', query).then(
    ({ stdout }) => stdout.trim(),
    () => '',
  )
  return library !== '' && (await exists(library)) ? 'stock' : undefined
}

const SCRIPT = `
set -e
out=$1 examples=$2 guests=$3
shift 3
"$examples/build.sh" "$@" --target-dir "$examples/target" --out "$out" --test "$examples"
"$examples/build.sh" "$@" --target-dir "$examples/target" --out "$out" "$guests"
`

let stop: (() => Promise<void>) | undefined

/**
 * Compiling takes minutes of processor time, and the tests leave as much unused: it starts with them, takes what nobody
 * else wants, and a test at the end looks at what came of it.
 */
export async function setup(project: TestProject): Promise<void> {
  const compiler = await findCompiler()
  project.provide('rustBuild', undefined)
  if (compiler === undefined) return
  const directory = await mkdtemp(`${tmpdir()}/brain-rust-build-`)
  const log = await open(`${directory}/log`, 'w')
  const toolchain = compiler === 'pinned' ? ['--toolchain', PINNED] : []
  const parameters = ['-c', SCRIPT, 'bash', `${directory}/components`, EXAMPLES, GUESTS, ...toolchain]
  const child = spawn('nice', ['-n', '19', 'bash', ...parameters], {
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
  })
  const ended = once(child, 'close').then(
    ([code]) => `exit code ${code as number | null}`,
    (error: unknown) => String(error),
  )
  void ended.then(async (how) => {
    await writeFile(`${directory}/end.new`, how)
    await rename(`${directory}/end.new`, `${directory}/end`)
  })
  await log.close()
  if (child.pid === undefined) throw new Error(await ended)
  project.provide('rustBuild', { compiler, directory, pid: child.pid })
  // Where the kernel shares the processor between sessions, a nice value counts within one of them only.
  await writeFile(`/proc/${child.pid}/autogroup`, '19').catch(() => undefined)

  stop = async () => {
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    await ended
    await rm(directory, { recursive: true, force: true, maxRetries: 5 })
  }
}

export const teardown = (): Promise<void> | undefined => stop?.()

/** Waits for the end of a build. @returns what it printed @throws when it failed */
export async function outputOf({ directory, pid }: RustBuild): Promise<string> {
  // Now somebody wants it. Only root may do that; for others it goes on as it was.
  await run('renice', ['-n', '0', '-g', String(pid)]).catch(() => undefined)
  await writeFile(`/proc/${pid}/autogroup`, '0').catch(() => undefined)
  for (;;) {
    const how = await readFile(`${directory}/end`, 'utf8').catch(() => '')
    const output = how === '' ? '' : await readFile(`${directory}/log`, 'utf8')
    if (how === 'exit code 0') return output
    if (how !== '') throw new Error(`Cannot build the Rust components: ${how}\n${output.slice(-4000)}`)
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}
