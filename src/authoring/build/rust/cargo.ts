import { runProgram } from './run-program.ts'
import type { RustCompiler } from './rust-compiler.ts'

/** What an error tells of what cargo wrote: its end is where the reasons stand. */
const TOLD_LINES = 60

export type Cargo = {
  readonly compiler: RustCompiler
  readonly directory: string
  readonly signal?: AbortSignal | undefined
  readonly onProgress: (line: string) => void
}

/**
 * Runs cargo, and tells its progress.
 *
 * @param onOutput hears the lines of its standard output; default: they are told in the error
 * @throws Error with the end of what it wrote, when it fails
 */
export async function cargo(
  { compiler, directory, signal, onProgress }: Cargo,
  parameters: readonly string[],
  onOutput?: (line: string) => void,
): Promise<void> {
  const told: string[] = []
  const tell = (line: string): void => {
    told.push(line)
    if (told.length > TOLD_LINES) told.shift()
  }
  const end = await runProgram({
    command: 'cargo',
    parameters,
    directory,
    env: compiler.env,
    signal,
    onOutput: onOutput ?? tell,
    onError: (line) => {
      tell(line)
      if (line.trim() !== '') onProgress(line)
    },
  })
  if (end === undefined) throw new Error('there is no cargo on the PATH; install it from https://rustup.rs')
  if (end.code === 0) return
  const how = end.code === null ? `was ended by ${end.signal}` : `failed with exit code ${end.code}`
  throw new Error([`cargo ${parameters[0]} ${how}`, ...told].join('\n'))
}
