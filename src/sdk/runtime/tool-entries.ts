import { isJsonObject, type Json } from '../../kernel/json.ts'

/** The condition of `exports` under which an entry's tools stand as their author wrote them. */
export const TOOL_CONDITION = 'brain-tool'

/** The file of an entry with tools, relative to its package; undefined for an entry without the condition. */
export function toolFileOf(manifest: Json, entry: string): string | undefined {
  const exported = isJsonObject(manifest) ? manifest['exports'] : undefined
  const conditions = isJsonObject(exported) && Object.hasOwn(exported, entry) ? exported[entry] : undefined
  const file = isJsonObject(conditions) ? conditions[TOOL_CONDITION] : undefined
  return typeof file === 'string' ? file : undefined
}
