import type { Json } from '../../kernel/json.ts'

/** Each value once, in the order in which they come first. */
export const distinct = (values: readonly Json[]): readonly Json[] => [
  ...new Map(values.map((value) => [JSON.stringify(value), value])).values(),
]
