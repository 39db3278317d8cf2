import { z } from 'zod'
import { isJsonObject, type JsonObject } from '../../kernel/json.ts'

/** What a package may be called: what a registry takes, and nothing that a path could be made of. */
const PACKAGE_NAME = /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/
/** One version, as https://semver.org has it, and no range of them. */
const VERSION =
  /^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$/
const ENTRY = /^\.(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9_.@~-]+)*$/
const EXPORT = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u

export const packageName = z.string().max(214).regex(PACKAGE_NAME, 'must be the name of an npm package')
export const exactVersion = z.string().max(256).regex(VERSION, 'must be one exact version such as 1.4.0')
export const packageEntry = z
  .string()
  .max(1024)
  .regex(ENTRY, 'must be "." or a subpath such as "./lookup", as "exports" of package.json has it')
export const exportName = z.string().max(256).regex(EXPORT, 'must be the name of an export')

/**
 * The implementation of a packaged tool (contract 2.2): which export of which entry of which version of an npm package it
 * is, and its options as they were given. For environments that install packages; {@link loadTool} loads it.
 */
export const nodePackage = z.strictObject({
  type: z.literal('node_package'),
  package: packageName,
  version: exactVersion,
  entry: packageEntry,
  export: exportName,
  configuration: z.custom<JsonObject>(isJsonObject, 'must be an object'),
})

/** Where the code of a packaged tool is, and its options: `{type, package, version, entry, export, configuration}`. */
export type NodePackage = z.output<typeof nodePackage>
