import { z } from 'zod'
import { clip, messageOf } from '../kernel/errors.ts'

/** What Zod has against a value; of anything else that was thrown, its message. */
export const faultsOf = (error: unknown): string => clip(isZodError(error) ? z.prettifyError(error) : messageOf(error))

/** By its form: `z.core`, which has the class, would take the whole of Zod into every component. */
const isZodError = (error: unknown): error is z.core.$ZodError =>
  typeof error === 'object' && error !== null && 'issues' in error && Array.isArray(error.issues)
