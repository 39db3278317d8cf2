import { z } from 'zod'
import { SESSION_STATUSES } from '../contract/session-request.ts'
import { identifierSchema as identifier, labelValueSchema, MOST_LABELS } from '../contract/name-schemas.ts'

/**
 * A session as JSON lines: a header that says the version, every record in its wire form (contract 3.1), and a last line
 * with what was before it, so that a file that is cut or changed is known.
 */
export const VERSION = 1

const MIB = 1024 * 1024
/** More than a record can have that a server took with its default limits. */
export const MAX_LINE_BYTES = 64 * MIB
export const MAX_FILE_BYTES = 4096 * MIB
/** A record holds values of the greatest depth that requests may have, within members of its own. */
export const MAX_RECORD_DEPTH = 96

export const headerSchema = z.strictObject({
  format: z.literal('brain-session'),
  version: z.literal(VERSION),
  session_id: z.string().regex(/^ses_[0-9a-f]{32}$/, 'must be "ses_" and 32 hexadecimal digits'),
  tenant: identifier,
  status: z.enum(SESSION_STATUSES),
  last_sequence: z.int().positive().max(0xffffffff),
  labels: z
    .record(identifier, labelValueSchema)
    .refine((all) => Object.keys(all).length <= MOST_LABELS, `must be at most ${MOST_LABELS}`),
})
export type Header = z.output<typeof headerSchema>

export const endSchema = z.strictObject({
  end: z.strictObject({
    records: z.int().positive(),
    /** Of every byte before this line. */
    sha256: z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits'),
  }),
})
