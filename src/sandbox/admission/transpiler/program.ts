import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BrainError, messageOf } from '../../../kernel/errors.ts'
import { bundledOnce } from '../../bundle-cache.ts'
import { bundleScript } from '../../bundle.ts'

/** What the transpiler child consists of. */
export type TranspilerProgram = {
  /** A classic script: serves one order on fd 3. */
  readonly script: Buffer
  /** jco's own core modules, in the order in which the script expects them. */
  readonly cores: readonly Buffer[]
  /** A classic script: judges on fd 3 the JavaScript that another process made. */
  readonly scriptCheck: Buffer
}

const NONE = Buffer.alloc(0)

const CORE_FILES = ['js-component-bindgen-component.core.wasm', 'js-component-bindgen-component.core2.wasm']

/** Names of the files that a published package carries beside this module, in that order. */
export const TRANSPILER_FILES = [
  'transpiler.cjs',
  'script-check.cjs',
  'transpiler.core.wasm',
  'transpiler.core2.wasm',
] as const

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** Where the vendored generator lies; its package entry is not used, since that starts a worker thread. */
const vendored = (): string => createRequire(import.meta.url).resolve('@bytecodealliance/jco-transpile/component')

/**
 * The generator's module, changed in one point: its core modules come from fd 3 and not from files, which the child
 * cannot read. A version of jco that is built otherwise fails here, not at the first upload.
 */
function patched(source: string): string {
  let text = source
  for (const [index, file] of CORE_FILES.entries()) {
    const loading = `fetchCompile(new URL('./${file}', import.meta.url))`
    if (text.split(loading).length !== 2)
      throw new Error(`jco-transpile loads ${file} in an unknown way: adapt transpiler/program.ts to this version`)
    text = text.replace(loading, `Promise.resolve(jcoCores[${index}])`)
  }
  return [
    `import { jcoCores } from ${JSON.stringify(here('./inbox.ts'))}`,
    `import { serve } from ${JSON.stringify(here('./child.ts'))}`,
    text,
    'serve({ ready: $init, generate })',
  ].join('\n')
}

/** Makes the program from the installed jco. Needs esbuild, a development dependency. */
export async function buildTranspiler(): Promise<TranspilerProgram> {
  const entry = vendored()
  const directory = dirname(entry)
  const [source, ...cores] = await Promise.all([
    readFile(entry, 'utf8'),
    ...CORE_FILES.map((file) => readFile(join(directory, file))),
  ])
  const { buildSync } = await import('esbuild')
  // Synchronous, since it leaves no service process behind and none of another bundler is stopped under its hands.
  // Neither platform nor condition says `node`: jco gets the shim's browser build, whose file system is empty.
  const result = buildSync({
    stdin: { contents: patched(source), resolveDir: directory, loader: 'js' },
    bundle: true,
    write: false,
    format: 'iife',
    platform: 'neutral',
    target: 'node26',
    mainFields: ['module', 'main'],
    conditions: ['import', 'default'],
    external: ['node:*'],
    minifyWhitespace: true,
    minifySyntax: true,
    logLevel: 'silent',
  })
  const scriptCheck = await bundleScript(here('../script-check/child.ts'))
  return { script: Buffer.from(result.outputFiles[0]?.contents ?? []), cores, scriptCheck }
}

/** Writes the files of a published package; the build runs it. */
export async function bundleTranspiler(outDirectory: string): Promise<void> {
  const contents = partsOf(await buildTranspiler())
  await mkdir(outDirectory, { recursive: true })
  await Promise.all(TRANSPILER_FILES.map((file, i) => writeFile(join(outDirectory, file), contents[i] ?? NONE)))
}

/** In the order of {@link TRANSPILER_FILES}. */
const partsOf = ({ script, scriptCheck, cores }: TranspilerProgram): readonly Buffer[] => [
  script,
  scriptCheck,
  ...cores,
]

const programOf = ([script = NONE, scriptCheck = NONE, ...cores]: readonly Buffer[]): TranspilerProgram => ({
  script,
  scriptCheck,
  cores,
})

const bundled = async (): Promise<TranspilerProgram> =>
  programOf(await bundledOnce('transpiler', async () => partsOf(await buildTranspiler())))

/** Reads what {@link bundleTranspiler} wrote. */
export async function readTranspiler(directory: string): Promise<TranspilerProgram> {
  return programOf(await Promise.all(TRANSPILER_FILES.map((file) => readFile(join(directory, file)))))
}

/**
 * The program as this installation has it: made when run from a checkout, read when published.
 *
 * @throws BrainError `internal` when it can be neither.
 */
export async function loadTranspiler(): Promise<TranspilerProgram> {
  try {
    return await (extname(import.meta.filename) === '.ts' ? bundled() : readTranspiler(here('.')))
  } catch (cause) {
    throw new BrainError('internal', `Cannot load the transpiler: ${messageOf(cause)}`, { cause })
  }
}
