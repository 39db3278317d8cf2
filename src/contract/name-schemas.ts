import { z } from 'zod'
import { IDENTIFIER, isIdentifier } from '../kernel/ids.ts'

/** A name that somebody chose (contract 0.2). */
export const identifierSchema = z
  .string()
  .refine(isIdentifier, 'must be an identifier')
  .meta({ pattern: IDENTIFIER.source })

/** The value of one label of a session (contract A28). */
export const labelValueSchema = z
  .string()
  .refine((text) => Buffer.byteLength(text) <= 256, 'must be at most 256 bytes')
  .meta({ maxLength: 256 })

/** Labels that a session may have (contract A28). */
export const MOST_LABELS = 16
