import { z } from 'zod'
import { isJsonObject, type Json } from '../../kernel/json.ts'
import { exactVersion, packageEntry, packageName } from '../runtime/node-package.ts'
import { TOOL_CONDITION, toolFileOf } from '../runtime/tool-entries.ts'

/** An entry of `exports` with tools: paths are relative to the package and begin with `./`. */
export type ToolEntry = {
  readonly entry: string
  /** What the author's build made. */
  readonly source: string
  /** What is made for applications. */
  readonly module: string
  readonly typings: string
}

export type ToolPackage = { readonly name: string; readonly version: string; readonly entries: readonly ToolEntry[] }

const CONDITIONS = new Set([TOOL_CONDITION, 'types', 'import', 'default'])
const EXAMPLE = `"./lookup": { "${TOOL_CONDITION}": "./dist/lookup.js", "types": "./dist/consumer/lookup.d.ts", "default": "./dist/consumer/lookup.js" }`

const manifestSchema = z.object({
  name: packageName,
  version: exactVersion,
  type: z.string().optional(),
  dependencies: z.record(z.string(), z.unknown()).optional(),
  peerDependencies: z.record(z.string(), z.unknown()).optional(),
})

/**
 * What a package.json says of the package's tools.
 *
 * @throws Error saying which member is not as it must be, and how it is right
 */
export function toolPackageOf(manifest: Json): ToolPackage {
  const parsed = manifestSchema.safeParse(manifest)
  if (!parsed.success) throw new Error(`package.json: ${z.prettifyError(parsed.error)}`)
  const { name, version, type, dependencies, peerDependencies } = parsed.data
  if (!('@aexhq/brain' in { ...dependencies, ...peerDependencies }))
    throw new Error(
      'package.json must have "@aexhq/brain" in dependencies or peerDependencies: what is made imports it',
    )
  const exported = isJsonObject(manifest) ? manifest['exports'] : undefined
  const names = isJsonObject(exported) ? Object.keys(exported) : []
  const entries = names.flatMap((entry) => {
    const source = toolFileOf(manifest, entry)
    return source === undefined ? [] : [entryOf(entry, source, (exported as Record<string, Json>)[entry] ?? null)]
  })
  if (entries.length === 0)
    throw new Error(`no entry of "exports" in package.json has the condition "${TOOL_CONDITION}", as in ${EXAMPLE}`)
  const common = entries.find(({ module }) => module.endsWith('.js') && type !== 'module')
  if (common !== undefined)
    throw new Error(`${common.module} would be no module: package.json needs "type": "module", or the file's name .mjs`)
  checkApart(entries)
  return { name, version, entries }
}

function entryOf(entry: string, source: string, conditions: Json): ToolEntry {
  const what = `the entry "${entry}" of "exports"`
  if (!packageEntry.safeParse(entry).success) throw new Error(`${what} must name one path, without a pattern`)
  const { types, import: imported, default: usual, ...rest } = conditions as Record<string, Json>
  const other = Object.keys(rest).find((condition) => !CONDITIONS.has(condition))
  if (other !== undefined) throw new Error(`${what} has the condition "${other}", which would pass by what is made`)
  if (imported !== undefined && usual !== undefined && imported !== usual)
    throw new Error(`${what} must have one of "import" and "default"`)
  const module = imported ?? usual
  if (typeof module !== 'string' || !/^\.\/.+\.m?js$/.test(module))
    throw new Error(`${what} must have "default", the .js or .mjs file that is made for applications, as in ${EXAMPLE}`)
  const typings = types ?? module.replace(/\.(m?)js$/, '.d.$1ts')
  if (typeof typings !== 'string' || !/^\.\/.+\.d\.m?ts$/.test(typings))
    throw new Error(`${what}: "types" must be the .d.ts file that is made, as in ${EXAMPLE}`)
  return { entry, source, module, typings }
}

/** Nothing that is made may be what another entry is made of, or be made twice. */
function checkApart(entries: readonly ToolEntry[]): void {
  const taken = new Set(entries.map(({ source }) => source))
  for (const path of entries.flatMap(({ module, typings }) => [module, typings])) {
    if (path.split('/').includes('..')) throw new Error(`${path} is not in the package`)
    if (taken.has(path))
      throw new Error(`${path} stands twice in "exports": each file that is made needs a name of its own`)
    taken.add(path)
  }
}
