import { z } from 'zod'
import { isIdentifier } from '../../kernel/ids.ts'
import { clip } from '../../kernel/errors.ts'
import { parseJson } from '../../kernel/json.ts'
import { ENVIRONMENT_CONTRACT, type EnvironmentReceipt } from '../../contract/environment-protocol.ts'
import { jsonSchema } from '../../contract/message-schema.ts'
import { nullAsAbsent } from '../../contract/null-as-absent.ts'

const receiptSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('accepted'), on_turn_end: nullAsAbsent(z.string().refine(isIdentifier)) }),
  z.strictObject({ type: z.literal('progress'), data: jsonSchema }),
  z.strictObject({ type: z.literal('result'), output: jsonSchema }),
  z.strictObject({ type: z.literal('returned'), output: jsonSchema.optional() }),
  z.strictObject({
    type: z.literal('failure'),
    code: z.string(),
    message: z.string(),
    retryable: z.boolean().default(false),
    details: jsonSchema.optional(),
  }),
  z.strictObject({ type: z.literal('unknown'), message: z.string() }),
])

const responseSchema = z.strictObject({
  contract: z.literal(ENVIRONMENT_CONTRACT),
  sequence: z.int(),
  receipt: receiptSchema,
})

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** What an environment answered to one operation; undefined where it is no answer to it (contract 5.1). */
export function readAnswer(body: Buffer, sequence: number): EnvironmentReceipt | undefined {
  try {
    const parsed = responseSchema.safeParse(parseJson(utf8.decode(body), 'answer of an environment'))
    if (!parsed.success || parsed.data.sequence !== sequence) return undefined
    const receipt = parsed.data.receipt as EnvironmentReceipt
    if (receipt.type !== 'failure') return receipt
    const code = isIdentifier(receipt.code) ? receipt.code : 'environment_error'
    return { ...receipt, code, message: clip(receipt.message) }
  } catch {
    return undefined
  }
}
