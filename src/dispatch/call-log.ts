import type { SessionId } from '../kernel/ids.ts'
import type { CallNote } from './tool-binding.ts'

/** What a call left besides its records (contract A29). Texts are cut at {@link CALL_LOG_BYTES} each. */
export type CallLog = {
  readonly stdout: string
  readonly stderr: string
  readonly telemetry: readonly string[]
  readonly warnings: readonly string[]
  readonly trap?: string
}

export const CALL_LOG_BYTES = 64 * 1024
export const CALL_LOG_RETENTION_MS = 24 * 3_600_000

/** Keeps call logs for a day, apart from the journal. Losing one loses nothing that was promised. */
export interface CallLogs {
  write(session: SessionId, sequence: number, log: CallLog): Promise<void>
  read(session: SessionId, sequence: number): Promise<CallLog | undefined>
  forget(session: SessionId): Promise<void>
}

const MAX_WARNINGS = 16

/** Gathers the notes of one call within the bounds. */
export class CallNotes {
  #stdout = ''
  #stderr = ''
  #telemetry: string[] = []
  #telemetryBytes = 0
  #warnings: string[] = []
  #trap: string | undefined

  add(note: CallNote): void {
    switch (note.type) {
      case 'stdout':
        this.#stdout = (this.#stdout + note.text).slice(0, CALL_LOG_BYTES)
        break
      case 'stderr':
        this.#stderr = (this.#stderr + note.text).slice(0, CALL_LOG_BYTES)
        break
      case 'trap':
        this.#trap = note.message
        break
      case 'warning':
        if (this.#warnings.length < MAX_WARNINGS) this.#warnings.push(note.message)
        break
      case 'telemetry':
        if (this.#telemetryBytes + note.record.length > CALL_LOG_BYTES) break
        this.#telemetryBytes += note.record.length
        this.#telemetry.push(note.record)
        break
      default:
        note satisfies never
    }
  }

  /** The log, or nothing when no note was left. */
  get log(): CallLog | undefined {
    const empty = this.#stdout === '' && this.#stderr === '' && this.#trap === undefined
    if (empty && this.#telemetry.length === 0 && this.#warnings.length === 0) return undefined
    return {
      stdout: this.#stdout,
      stderr: this.#stderr,
      telemetry: this.#telemetry,
      warnings: this.#warnings,
      ...(this.#trap === undefined ? {} : { trap: this.#trap }),
    }
  }
}
