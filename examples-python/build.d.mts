export type PythonBuildOptions = {
  /** Holds the compiler and the built components; made when it is not there. */
  readonly cacheDirectory: string
  /** Called with a line of text for people at each step; a first build takes about 10 s, later ones nothing. */
  readonly onProgress?: (line: string) => void
  /** Interrupts a build; it then rejects with the signal's reason, after everything of it has ended. */
  readonly signal?: AbortSignal
}

/**
 * Builds one Python tool as a component, or takes it from the cache.
 *
 * @param tool a folder with `tool.py` and `tool.json`: the name of an example beside this file (`inspect`,
 *   `csv_report`), or an absolute path.
 * @returns the component's path; or, on a machine without a suitable Python, why there is none and what to install.
 * @throws Error when the tool does not compile, or the compiler cannot be installed
 */
export function buildPythonTool(
  tool: string,
  options: PythonBuildOptions,
): Promise<
  | { readonly built: true; readonly component: string; readonly fromCache: boolean }
  | { readonly built: false; readonly reason: string }
>

/**
 * Installs componentize-py into the cache directory, if it is not there.
 *
 * @returns the Python that holds it, for callers who run it themselves.
 * @throws Error when it cannot be installed
 */
export function preparePythonCompiler(
  options: PythonBuildOptions,
): Promise<{ readonly ready: true; readonly python: string } | { readonly ready: false; readonly reason: string }>
