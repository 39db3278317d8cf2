import { relative, resolve } from 'node:path'
import { buildTools } from '../authoring/build/build-tools.ts'
import type { BuiltTool } from '../authoring/build/tool-builder.ts'
import { explainFailure } from './explain-failure.ts'
import { openProgress } from './progress.ts'
import type { Environment } from './environment.ts'

export type BuildCommandOptions = { readonly out?: string | undefined; readonly json?: boolean | undefined }

/** Where components go when nothing else is said. */
const USUAL_OUT = 'dist'

const BYTES_PER_MB = 1_000_000

/**
 * `brain build`: a component of each tool in a source. What is being done and what went wrong is told on standard error,
 * what was made on standard output.
 *
 * @returns the exit code: 0 built, 1 not built
 */
export async function printBuild(
  env: Environment,
  source: string,
  { out = USUAL_OUT, json = false }: BuildCommandOptions,
): Promise<number> {
  const progress = openProgress(process.stderr)
  const interrupted = new AbortController()
  const stop = (): void => interrupted.abort(new Error('Cannot go on: interrupted'))
  process.once('SIGINT', stop).once('SIGTERM', stop)
  try {
    progress.step(`building ${source}`)
    const tools = await buildTools(source, {
      outDirectory: resolve(out),
      onProgress: (line) => progress.detail(line),
      signal: interrupted.signal,
      env,
    })
    progress.done(tools.length === 1 ? 'one tool' : `${tools.length} tools`)
    process.stdout.write(json ? `${JSON.stringify({ tools }, null, 2)}\n` : tools.map(lineOf).join(''))
    return 0
  } catch (error) {
    progress.stop()
    process.stderr.write(`${explainFailure(error)}\n`)
    return 1
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop)
  }
}

function lineOf({ name, component, bytes }: BuiltTool): string {
  return `${name}  ${relative(process.cwd(), component)}  ${(bytes / BYTES_PER_MB).toFixed(2)} MB\n`
}
