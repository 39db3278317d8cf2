import { createRequire } from 'node:module'
import { extname } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type * as Qjs from 'componentize-qjs'
import type * as Esbuild from 'esbuild'

/** What a tool in TypeScript is built with. */
export type AuthorPackages = {
  readonly esbuild: typeof Esbuild
  readonly qjs: typeof Qjs
  /** Paths of the client's entries `@aexhq/brain` and `@aexhq/brain/component`. */
  readonly sdk: string
  readonly component: string
  /** Where packages are looked for that the author's project does not have. */
  readonly nodePaths: readonly string[]
}

const isCheckout = extname(import.meta.filename) === '.ts'
const fromRoot = (path: string): string => fileURLToPath(new URL(`../../../../${path}`, import.meta.url))

/** Versions that this is tried with. */
const INSTALL = 'npm install --save-dev esbuild@^0.28 componentize-qjs@^0.4.5'

/**
 * Finds the toolchain and the client: in the author's project, else in this checkout.
 *
 * @param source the file that is built
 * @throws Error with the command that installs what is missing
 */
export async function findAuthorPackages(source: string): Promise<AuthorPackages> {
  const require = createRequire(source)
  const resolved = (name: string): string | undefined => {
    try {
      return require.resolve(name)
    } catch {
      return undefined
    }
  }
  const load = async (name: 'esbuild' | 'componentize-qjs'): Promise<unknown> => {
    const path = resolved(name) ?? (isCheckout ? createRequire(import.meta.url).resolve(name) : undefined)
    if (path === undefined)
      throw new Error(`Cannot build ${JSON.stringify(source)}: ${name} is not installed; run ${INSTALL}`)
    const module = (await import(pathToFileURL(path).href)) as { default?: unknown }
    return module.default ?? module
  }
  const [esbuild, qjs] = await Promise.all([load('esbuild'), load('componentize-qjs')])
  return {
    esbuild: esbuild as typeof Esbuild,
    qjs: qjs as typeof Qjs,
    ...clientOf(source, resolved),
    nodePaths: isCheckout ? [fromRoot('node_modules')] : [],
  }
}

function clientOf(
  source: string,
  resolved: (name: string) => string | undefined,
): Pick<AuthorPackages, 'sdk' | 'component'> {
  const sdk = resolved('@aexhq/brain')
  const component = resolved('@aexhq/brain/component')
  if (sdk !== undefined && component !== undefined) return { sdk, component }
  if (isCheckout) return { sdk: fromRoot('src/sdk/index.ts'), component: fromRoot('src/sdk/component.ts') }
  const reason = sdk === undefined ? 'is not installed' : 'is too old to be built into components'
  throw new Error(
    `Cannot build ${JSON.stringify(source)}: @aexhq/brain ${reason}; run npm install @aexhq/brain@latest zod`,
  )
}
