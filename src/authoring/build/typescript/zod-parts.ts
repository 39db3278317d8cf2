import { readFile } from 'node:fs/promises'
import type { Plugin } from 'esbuild'

/**
 * Imports of Zod in a module that esbuild wrote, in the form of which it takes only what is used: `z` of `zod` is the whole
 * of it, and its members are all kept unless they are imported as a namespace.
 */
export const zodAsNamespace = (text: string): string =>
  text.replace(/^import (.+) from "(zod(?:\/v4)?)";$/gm, (_line, names: string, from: string) =>
    bindingsOf(names)
      .map(([imported, local]) =>
        imported === 'z' || imported === 'default' || imported === '*'
          ? `import * as ${local} from "${from}";`
          : `import { ${imported} as ${local} } from "${from}";`,
      )
      .join('\n'),
  )

/** `a, { b, c as d }` and `* as e`, as pairs of what is imported and what it is called. */
function bindingsOf(names: string): [string, string][] {
  const [, alone, namespace, listed] = /^(?:([\w$]+)(?:, )?)?(?:\* as ([\w$]+))?(?:\{ (.*) \})?$/.exec(names) ?? []
  const inBraces = (listed?.split(', ') ?? []).map((one): [string, string] => {
    const [imported = '', local = imported] = one.split(' as ')
    return [imported, local]
  })
  return [
    ...(alone === undefined ? [] : [['default', alone] as [string, string]]),
    ...(namespace === undefined ? [] : [['*', namespace] as [string, string]]),
    ...inBraces,
  ]
}

/** Schemas are told as JSON Schema while a component is built, in every language but English by nobody. */
const UNUSED: readonly { readonly file: RegExp; readonly unless: string }[] = [
  { file: /zod[/\\]v4[/\\]core[/\\](?:to-json-schema|json-schema-processors)\.js$/, unless: 'JSONSchema' },
  { file: /zod[/\\]v4[/\\]locales[/\\]index\.js$/, unless: 'locales' },
]

/** Leaves out parts of Zod that the module `text` does not mention. */
export const withoutUnusedZod = (text: string): Plugin => ({
  name: 'unused-zod',
  setup(build) {
    for (const { file, unless } of UNUSED)
      if (!text.includes(unless))
        build.onLoad({ filter: file }, async ({ path }) => ({ contents: await emptied(path) }))
  },
})

/** A module with the same exports, of which English stays and functions make nothing. */
async function emptied(path: string): Promise<string> {
  const text = await readFile(path, 'utf8')
  if (path.includes('locales')) return "export { default as en } from './en.js'"
  const names = [
    ...[...text.matchAll(/^export (?:async )?(?:const|function|class) ([\w$]+)/gm)].map(([, name]) => name),
    ...[...text.matchAll(/^export \{ [\w$]+ as ([\w$]+) \}/gm)].map(([, name]) => name),
  ]
  const none = "const none = () => () => { throw new Error('JSON Schema is not there in a component') }"
  return `${none}\n${names.map((name) => `export { none as ${name} }`).join('\n')}`
}
