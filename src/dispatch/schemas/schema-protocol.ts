/** One check on its way to the schema thread. The thread keeps a schema from the check that brings it to the one that drops it. */
export type SchemaCheck = {
  readonly id: number
  /** Names the schema; its text comes only with the first check of a thread that needs it. */
  readonly digest: string
  readonly schema?: string
  /** A digest whose schema the thread may forget. */
  readonly drop?: string
  /** JSON text to check; without it the schema itself is. */
  readonly value?: string
}

/**
 * Verdicts come in the order of the checks; `fault` is absent when all is well. `cpuMs` is what the thread has computed
 * so far; now and then a verdict carries it.
 */
export type FromSchemaThread =
  | { readonly type: 'ready'; readonly cpuMs: number }
  | { readonly type: 'verdict'; readonly id: number; readonly fault?: string; readonly cpuMs?: number }
