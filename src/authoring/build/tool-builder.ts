/** One component that a build made. */
export type BuiltTool = {
  readonly name: string
  /** Absolute path of the .wasm file. */
  readonly component: string
  readonly bytes: number
}

export type BuildOptions = {
  /** Where `NAME.wasm` goes; made when missing. */
  readonly outDirectory: string
  /** Hears what is being done, line by line. */
  readonly onProgress: (line: string) => void
  readonly signal?: AbortSignal
  /** Builds quickly rather than well, to try what was changed, where a language knows the difference; default: no. */
  readonly quick?: boolean
  /** The environment of the command: PATH, HOME, BRAIN_RUST_TOOLCHAIN … */
  readonly env: Readonly<Record<string, string | undefined>>
}

/**
 * Makes a component of each tool in a source.
 *
 * @param source absolute path of a file or a folder
 * @throws Error `Cannot build "…": …` with the remedy, for a source that cannot be built and for a toolchain that is not
 * there; the reason of the signal
 */
export type ToolBuilder = (source: string, options: BuildOptions) => Promise<readonly BuiltTool[]>
