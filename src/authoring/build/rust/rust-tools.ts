import { dirname, join, resolve } from 'node:path'
import { z } from 'zod'
import { type Cargo, cargo } from './cargo.ts'

/** A package that is a tool. */
export type RustTool = { readonly package: string; readonly directory: string; readonly library: string }

export type RustWorkspace = { readonly tools: readonly RustTool[]; readonly target: string }

const METADATA = z.object({
  target_directory: z.string(),
  packages: z.array(
    z.object({
      name: z.string(),
      manifest_path: z.string(),
      dependencies: z.array(z.object({ name: z.string() })),
      targets: z.array(z.object({ name: z.string(), kind: z.array(z.string()) })),
    }),
  ),
})

type Package = z.infer<typeof METADATA>['packages'][number]

const toolOf = ({ name, manifest_path, dependencies, targets }: Package): RustTool | undefined => {
  const library = targets.find(({ kind }) => kind.includes('cdylib'))
  if (library === undefined || !dependencies.some((one) => one.name === 'brain-tool')) return undefined
  return { package: name, directory: dirname(manifest_path), library: library.name }
}

/**
 * Finds the tools of a package, or of a workspace where the folder is no package itself.
 *
 * @throws Error when cargo cannot read it, and when there is none
 */
export async function findRustTools(runner: Cargo): Promise<RustWorkspace> {
  const lines: string[] = []
  await cargo(runner, ['metadata', '--no-deps', '--format-version', '1'], (line) => lines.push(line))
  const { packages, target_directory: target } = METADATA.parse(JSON.parse(lines.join('')))
  const manifest = resolve(runner.directory, 'Cargo.toml')
  const own = packages.filter(({ manifest_path }) => manifest_path === manifest)
  const tools = (own.length > 0 ? own : packages).flatMap((one) => toolOf(one) ?? [])
  if (tools.length === 0)
    throw new Error(
      'no package in it is a tool; one has `crate-type = ["cdylib"]` in [lib], and brain-tool among its [dependencies]',
    )
  const { folder } = runner.compiler
  return { tools, target: folder === undefined ? target : join(target, folder) }
}
