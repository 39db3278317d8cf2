import { createHash, type Hash } from 'node:crypto'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import type { z } from 'zod'
import { prettifyError } from 'zod'
import type { SessionStatus } from '../contract/session-request.ts'
import { boundedLines, type Line } from '../kernel/bounded-lines.ts'
import { BrainError, clip, messageOf } from '../kernel/errors.ts'
import { parseSessionId, type SessionId } from '../kernel/ids.ts'
import { type Json, parsePrintedJson } from '../kernel/json.ts'
import type { JournalRecord } from '../journal/record.ts'
import type { RecordText } from '../journal/record-text.ts'
import { RecordCheck } from './record-check.ts'
import {
  endSchema,
  type Header,
  headerSchema,
  MAX_FILE_BYTES,
  MAX_LINE_BYTES,
  MAX_RECORD_DEPTH,
} from './session-file.ts'

type Row = { readonly id: string; readonly tenant: string; readonly labels: Readonly<Record<string, string>> }

/** Writes a session in one transaction; `compose` has it. */
export type InsertSession = (
  directory: string,
  row: Row,
  write: (writer: { add(record: RecordText & { readonly at: number }): void }) => Promise<SessionStatus>,
) => Promise<void>

export type ImportOptions = {
  /** A data directory that no server uses. */
  readonly directory: string
  readonly chunks: AsyncIterable<Buffer>
  readonly insert: InsertSession
  /** Runs just before the session becomes durable; when it throws, nothing is imported. */
  readonly beforeCommit: (session: SessionId) => Promise<void>
}

export type ImportReport = {
  readonly session_id: SessionId
  readonly status: SessionStatus
  readonly records: number
  /** Components of its tools and its agentloop that are not in the data directory. */
  readonly missing_components: readonly string[]
}

/**
 * Puts an exported session into a data directory, whole or not at all.
 *
 * @throws BrainError `invalid_request` naming the line that is wrong, `conflict` when the session is there,
 * `storage_unavailable`.
 */
export async function importSession(options: ImportOptions): Promise<ImportReport> {
  const lines = boundedLines(options.chunks, { lineBytes: MAX_LINE_BYTES, allBytes: MAX_FILE_BYTES, refusal })
  const hash = createHash('sha256')
  const first = await lines.next()
  if (first.done === true) throw refusal(1, 'the file is empty')
  const header = readHeader(first.value)
  count(hash, first.value)
  const id = parseSessionId(header.session_id)
  const check = new RecordCheck()
  await options.insert(options.directory, { id, tenant: header.tenant, labels: header.labels }, async (writer) => {
    await readRecords(lines, { header, hash, check, add: (record) => writer.add(record) })
    await options.beforeCommit(id)
    return check.status
  })
  const missing: string[] = []
  for (const component of check.components)
    if (!(await isThere(join(options.directory, 'components', component)))) missing.push(component)
  return { session_id: id, status: check.status, records: check.records, missing_components: missing }
}

type Reading = {
  readonly header: Header
  readonly hash: Hash
  readonly check: RecordCheck
  readonly add: (record: RecordText & { readonly at: number }) => void
}

async function readRecords(lines: AsyncGenerator<Line>, { header, hash, check, add }: Reading): Promise<void> {
  for await (const line of lines) {
    const value = parseLine(line)
    if (check.records < header.last_sequence) {
      add(textOf(addTo(check, line, value)))
      count(hash, line)
      continue
    }
    const { end } = fit(endSchema, line, value)
    if (end.sha256 !== hash.digest('hex'))
      throw refusal(line.number, 'the lines before it are not those that were exported')
    if (end.records !== check.records) throw refusal(line.number, `it speaks of ${end.records} records`)
    if (check.status !== header.status)
      throw refusal(1, `it says that the session is ${header.status}, and its records come to ${check.status}`)
    const next = await lines.next()
    if (next.done !== true) throw refusal(next.value.number, 'nothing may follow the line of the end')
    return
  }
  throw refusal(check.records + 2, 'it is missing: the file was cut short')
}

function readHeader(line: Line): Header {
  const value = parseLine(line)
  const { format, version } = (value ?? {}) as { readonly format?: Json; readonly version?: Json }
  if (format !== 'brain-session') throw refusal(line.number, 'the file is no export of a session')
  if (version !== 1)
    throw refusal(line.number, `this version of Brain reads exports of version 1, and not ${JSON.stringify(version)}`)
  return fit(headerSchema, line, value)
}

function parseLine({ number, bytes }: Line): Json {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw refusal(number, 'it is not UTF-8', cause)
  }
  try {
    return parsePrintedJson(text, `line ${number}`, MAX_RECORD_DEPTH)
  } catch (cause) {
    throw new BrainError('invalid_request', messageOf(cause).replace(/^Cannot read/, 'Cannot import'), { cause })
  }
}

function fit<Schema extends z.ZodType>(schema: Schema, { number }: Line, value: Json): z.output<Schema> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw refusal(number, clip(prettifyError(parsed.error), 1000))
}

function addTo(check: RecordCheck, { number }: Line, value: Json): JournalRecord {
  try {
    return check.add(value)
  } catch (cause) {
    throw refusal(number, clip(messageOf(cause), 1000), cause)
  }
}

const textOf = ({ event_type: type, data, origin, recorded_at_ms: at }: JournalRecord) => ({
  type,
  at,
  data: JSON.stringify(data),
  origin: origin === undefined ? null : JSON.stringify(origin),
})

const count = (hash: Hash, { bytes }: Line): void => void hash.update(bytes).update('\n')

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

const refusal = (line: number, reason: string, cause?: unknown): BrainError =>
  new BrainError('invalid_request', `Cannot import line ${line}: ${reason}`, { cause })
