import { z } from 'zod'
import { jsonObjectSchema, jsonSchema } from '../../contract/message-schema.ts'

const files = z.record(z.string().min(1), z.string())

const expectedOutcome = z.strictObject({
  status: z.enum(['ok', 'error', 'timeout', 'cancelled', 'unknown']),
  /** Of `ok`: what the tool finished with, which is its last result. */
  value: jsonSchema.optional(),
  /** Of `error`: members that are given must be equal. */
  error: z
    .strictObject({
      code: z.string().optional(),
      message: z.string().optional(),
      retryable: z.boolean().optional(),
      details: jsonSchema.optional(),
    })
    .optional(),
})

const caseSchema = z.strictObject({
  name: z.string().min(1).max(200),
  input: jsonSchema.default({}),
  /** With what the tool is placed. */
  options: jsonSchema.default({}),
  /** Texts of files that are in the workspace beforehand, by their paths. */
  files: files.default({}),
  /** What the model answers, one element a call (contract A23). */
  model: z.array(jsonObjectSchema).min(1).optional(),
  deadline: z.string().default('30s'),
  expect: z.strictObject({
    outcome: expectedOutcome,
    /** Every event that the tool emits, in order. */
    events: z.array(z.strictObject({ kind: z.string(), payload: jsonSchema.optional() })).optional(),
    /** The value of every result that it emits, in order. */
    results: z.array(jsonSchema).optional(),
    /** Texts of files afterwards, by their paths; null = there is none. */
    files: z.record(z.string().min(1), z.string().nullable()).optional(),
  }),
})

/** What a cases file holds: a list of at most 1,000. */
export const casesSchema = z
  .array(caseSchema)
  .min(1, 'there is no case')
  .max(1000)
  .refine((cases) => new Set(cases.map(({ name }) => name)).size === cases.length, 'each case needs a name of its own')

export type ToolCase = z.output<typeof caseSchema>
