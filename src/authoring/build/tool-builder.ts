import { Kept } from './kept.ts'
import type { RustCompiler } from './rust/rust-compiler.ts'
import type { RoomyComponent } from './typescript/roomy-component.ts'

/** What does not change when only a source does, for the builds of one source in one process. */
export class QuickBuilds {
  readonly rustCompiler = new Kept<RustCompiler>()
  readonly roomyComponent = new Kept<RoomyComponent>()
  /** Names of the exports that were tools last time. */
  exportedTools: readonly string[] = []
}

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
  /**
   * Builds quickly rather than well, to try what was changed, where a language knows the difference, and keeps here what the
   * next build of the same source can use again. Default: it builds well.
   */
  readonly quick?: QuickBuilds
  /**
   * Hears of what a quick build most likely makes, before it is sure: whoever waits for it may begin with what has no effect.
   * The files may be replaced until the build is done.
   */
  readonly onLikely?: (tools: readonly BuiltTool[]) => void
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
