import { createHash } from 'node:crypto'
import { access, readFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { runProgram } from './run-program.ts'

export const TARGET = 'wasm32-wasip2'
const OLDEST = [1, 85] as const

type Environment = Readonly<Record<string, string | undefined>>

/** What cargo is started with, so that it compiles for {@link TARGET}. */
export type RustCompiler = {
  readonly env: Environment
  /** The target of this machine. */
  readonly host: string
  /** A name for the folder of what it compiles; none for the compiler that cargo finds itself. */
  readonly folder?: string
}

const INSTALL = `install Rust ${OLDEST.join('.')} or newer from https://rustup.rs, then run: rustup target add ${TARGET}`
const DEBIAN =
  'Where there is no rustup, as with the packages of Debian, set BRAIN_RUST_TOOLCHAIN to a folder that ' +
  'examples-rust/setup-toolchain.sh of Brain has filled'

/**
 * Finds a Rust that makes components: the one that `BRAIN_RUST_TOOLCHAIN` names, or the one on the PATH.
 *
 * @throws Error with what is missing and the command that brings it
 */
export async function findRustCompiler(given: Environment, directory: string): Promise<RustCompiler> {
  const toolchain = given['BRAIN_RUST_TOOLCHAIN'] ?? ''
  // Nothing of cargo is for a terminal here.
  const quiet = { ...given, CARGO_TERM_COLOR: 'never', CARGO_TERM_PROGRESS_WHEN: 'never' }
  const { env, folder } = toolchain === '' ? { env: quiet, folder: undefined } : await unpacked(toolchain, quiet)
  const facts = await ask(env, directory, ['-vV'])
  const version = /^release: (\d+)\.(\d+)/m.exec(facts)
  const host = /^host: (\S+)$/m.exec(facts)?.[1]
  if (version === null || host === undefined) throw new Error(`the rustc on the PATH is none; ${INSTALL}`)
  const [major, minor] = [Number(version[1]), Number(version[2])]
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]))
    throw new Error(`this Rust is ${major}.${minor}; ${INSTALL}`)
  const library = await ask(env, directory, ['--print', 'target-libdir', '--target', TARGET])
  if (!(await isThere(library.trim())))
    throw new Error(`this Rust has no standard library for ${TARGET}; run: rustup target add ${TARGET}. ${DEBIAN}`)
  return { env, host, ...(folder !== undefined && { folder }) }
}

async function ask(env: Environment, directory: string, parameters: readonly string[]): Promise<string> {
  const lines: string[] = []
  const command = env['RUSTC'] ?? 'rustc'
  const end = await runProgram({ command, parameters, directory, env, onOutput: (line) => lines.push(line) })
  if (end === undefined) throw new Error(`there is no Rust on the PATH; ${INSTALL}`)
  return lines.join('\n')
}

async function unpacked(toolchain: string, env: Environment): Promise<{ env: Environment; folder: string }> {
  const recipe = await readFile(join(toolchain, 'complete')).catch(() => undefined)
  if (recipe === undefined)
    throw new Error(
      `BRAIN_RUST_TOOLCHAIN is ${JSON.stringify(toolchain)}, which holds no complete toolchain; run: ` +
        `examples-rust/setup-toolchain.sh ${toolchain}`,
    )
  const programs = join(toolchain, 'bin')
  const path = [programs, env['PATH'] ?? ''].join(delimiter)
  const tools = { RUSTC: join(programs, 'rustc'), RUSTDOC: join(programs, 'rustdoc') }
  // Cargo does not notice another linker, so each toolchain has a folder of its own; build.sh names it alike.
  const folder = createHash('sha256').update(recipe).digest('hex').slice(0, 12)
  return { env: { ...env, ...tools, PATH: path }, folder }
}

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => path !== '',
    () => false,
  )
