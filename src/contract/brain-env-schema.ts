import { z } from 'zod'
import { listOf } from './list-of.ts'
import { parseOrigin } from './network-origin.ts'

const access = z.enum(['read', 'write'])
const secretName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be the name of a variable')

const networkOrigin = z
  .string()
  .max(300)
  .refine(
    (text) => parseOrigin(text) !== undefined,
    'must be an origin such as https://api.example or https://*.example:8443',
  )

/** What a brainEnv asks for (contract 6.1). */
export const brainEnvSchema = z.strictObject({
  secrets: listOf(secretName, 64).optional(),
  network: listOf(networkOrigin, 256).optional(),
  filesystem: z.strictObject({ workspace: access.optional(), scratch: access.optional() }).optional(),
})
