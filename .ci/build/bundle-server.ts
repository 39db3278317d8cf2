import { readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { build, type Plugin } from 'esbuild'

/** What Node is started with, in a process or in a thread. */
const ENTRIES = [
  'cli/brain',
  'cli/keep-compiled',
  'dispatch/schemas/schema-thread',
  'journal/sqlite/writer-thread',
  'journal/sqlite/reader-thread',
]

/**
 * Joins the modules of the server into few files, which commands load in half of the time. Packages stay outside.
 *
 * @param modules what the compiler made of `src`
 * @param lib the folder of that name in the package
 */
export async function bundleServer(modules: string, lib: string): Promise<void> {
  await build({
    entryPoints: ENTRIES.map((entry) => join(modules, `${entry}.js`)),
    outbase: modules,
    outdir: lib,
    bundle: true,
    splitting: true,
    chunkNames: 'chunks/[hash]',
    packages: 'external',
    format: 'esm',
    platform: 'node',
    target: 'node26',
    logLevel: 'silent',
    plugins: [keepPlaces(modules)],
  })
}

/** Modules look for files beside themselves: each is told where it would be in the package if it were not joined. */
const keepPlaces = (modules: string): Plugin => ({
  name: 'keep-places',
  setup(builder) {
    builder.onLoad({ filter: /\.js$/ }, async ({ path }) => {
      if (!path.startsWith(modules)) return undefined
      const place = JSON.stringify(relative(modules, path))
      const contents = (await readFile(path, 'utf8'))
        .replaceAll('import.meta.filename', place)
        // The last one: the folders above the package are somebody else's.
        .replaceAll(
          'import.meta.url',
          `(import.meta.url.slice(0, import.meta.url.lastIndexOf('/lib/') + 5) + ${place})`,
        )
      return { contents, loader: 'js' }
    })
  },
})
