import type { JsonObject } from '../kernel/json.ts'

export type SchemaVerdict =
  | { readonly valid: true }
  /** `message` names the first faults with their paths. */
  | { readonly valid: false; readonly message: string }

/**
 * Compiles and runs JSON Schemas that came from outside (2020-12), away from the threads that serve (design 2): at most
 * 64 KiB, depth 32, no remote `$ref`, 250 ms a check. What takes longer is a verdict, never a hang.
 */
export interface SchemaChecker extends AsyncDisposable {
  /** Whether the text is a usable schema. */
  checkSchema(schema: JsonObject): Promise<SchemaVerdict>
  /** Whether the JSON text `valueText` satisfies the schema. */
  checkValue(schema: JsonObject, valueText: string): Promise<SchemaVerdict>
}
