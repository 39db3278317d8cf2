import type { z } from 'zod'

/** A member that may be left out, for which clients of some languages send null (contract 0.2). */
export const nullAsAbsent = <Schema extends z.ZodType>(schema: Schema) =>
  schema.nullish().transform((value) => value ?? undefined)
