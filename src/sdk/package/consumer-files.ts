import type { Json, JsonObject } from '../../kernel/json.ts'
import type { ToolMetadata } from '../../contract/session-request.ts'
import { typescriptOfSchema } from './typescript-of-schema.ts'

/** One export of an entry. */
export type ExportedTool = {
  readonly export: string
  readonly metadata: ToolMetadata
  readonly implementation: JsonObject
}

/** What every generated file begins with, and no other file is written over. */
export const MARK = '// Made by brain-tools from the tools of this package. Do not edit: run it again.\n'

/** The module that applications import: factories without the code of their tools. */
export function consumerModule(tools: readonly ExportedTool[]): string {
  const bound = tools.map(
    ({ metadata, implementation }, index) =>
      `const tool${index + 1} = /* @__PURE__ */ bindTool(\n${literal(metadata as unknown as Json)},\n${literal(implementation)},\n)\n`,
  )
  return [MARK, `import { bindTool } from '@aexhq/brain'\n\n`, ...bound, '\n', exportsOf(tools)].join('')
}

/** Its typings. */
export function consumerTypings(tools: readonly ExportedTool[]): string {
  const declared = tools.map(({ metadata }, index) => {
    const { description, input_schema, output_schema, options_schema } = metadata
    const parts = Object.entries({ input: input_schema, output: output_schema, options: options_schema }).map(
      ([part, schema]) => ({
        part,
        ...(schema === undefined
          ? { type: 'unknown', definitions: [] }
          : typescriptOfSchema(schema, `Tool${index + 1}${part[0]?.toUpperCase()}${part.slice(1)}`)),
      }),
    )
    const definitions = parts.flatMap(({ definitions: own }) => own.map((one) => `${one}\n`))
    const types = parts.map(({ part, type }) => `  readonly ${part}: ${type}\n`)
    return `${definitions.join('')}${comment(description)}declare const tool${index + 1}: PackagedTool<{\n${types.join('')}}>\n`
  })
  return [MARK, `import type { PackagedTool } from '@aexhq/brain'\n\n`, ...declared, '\n', exportsOf(tools)].join('')
}

/** Names of exports may be words that no variable may have, such as `default`. */
const exportsOf = (tools: readonly ExportedTool[]): string =>
  `export { ${tools.map((tool, index) => `tool${index + 1} as ${tool.export}`).join(', ')} }\n`

/** A value as JavaScript. In a literal, a member `__proto__` would be something else than in JSON. */
function literal(value: Json): string {
  const text = JSON.stringify(value, null, 2)
  return text.includes('"__proto__"') ? `JSON.parse(${JSON.stringify(JSON.stringify(value))})` : text
}

const comment = (text: string): string =>
  `/**\n${text
    .replaceAll('*/', '*\u200b/')
    .split(/\r\n|\r|\n|\u2028|\u2029/)
    .map((line) => ` * ${line}`.trimEnd())
    .join('\n')}\n */\n`
