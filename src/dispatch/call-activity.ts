import type { SessionId } from '../kernel/ids.ts'

/** The live frame that shows how far a call is, on every stream of its session (contract A5). */
export const PROGRESS_FRAME = 'tool.progress'

/** One name for a call that no other call has, whatever id the model gave it (contract A4). */
export const activityIdOf = (session: SessionId, sequence: number): string =>
  `call_${session.slice('ses_'.length)}_${sequence}`
