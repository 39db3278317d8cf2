import { createReadStream } from 'node:fs'
import { link, open, rm } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { exportSession } from '../../archive/export-session.ts'
import { importSession } from '../../archive/import-session.ts'
import { archiveJournal, archiveWriter } from '../../compose.ts'
import { BrainError, messageOf } from '../../kernel/errors.ts'
import { parseSessionId } from '../../kernel/ids.ts'
import { dataDirectoryOf } from '../data-directory.ts'
import type { Environment } from '../environment.ts'
import type { ArchiveOptions } from './backup.ts'
import { stopSignals } from './stop-signals.ts'

export type ExportOptions = Pick<ArchiveOptions, 'dataDir'> & { readonly out?: string }
export type ImportCommandOptions = ArchiveOptions & { readonly apiKeyEnv?: string }

/** Writes a session as JSON lines to standard output, or to a file that is not there yet. */
export async function printExport(env: Environment, id: string, { dataDir, out }: ExportOptions): Promise<void> {
  const session = parseSessionId(id)
  using snapshot = archiveJournal.openIn(dataDirectoryOf(env, dataDir))
  using stop = stopSignals('finish the export')
  try {
    const lines = exportSession(snapshot, session)
    if (out === undefined) await pipeline(Readable.from(lines), process.stdout, { signal: stop.signal, end: false })
    else await writeNew(out, lines, stop.signal)
  } catch (cause) {
    throw stop.signal.aborted ? stop.signal.reason : cannotWrite(out ?? 'standard output', cause)
  }
}

/** The file appears whole or not at all, and replaces nothing. */
async function writeNew(out: string, lines: Iterable<string>, signal: AbortSignal): Promise<void> {
  const partial = `${out}.partial`
  const file = await open(partial, 'wx', 0o600)
  try {
    await pipeline(Readable.from(lines), file.createWriteStream({ flush: true }), { signal })
    // A link, unlike a renaming, never replaces what is there.
    await link(partial, out)
  } finally {
    await rm(partial, { force: true })
  }
}

function cannotWrite(out: string, cause: unknown): BrainError {
  if (cause instanceof BrainError) return cause
  const isThere = cause instanceof Error && 'code' in cause && cause.code === 'EEXIST'
  const reason = isThere
    ? 'it or its .partial is there, and nothing is overwritten; choose a name that is not in use'
    : messageOf(cause)
  return new BrainError('storage_unavailable', `Cannot write ${out}: ${reason}`, { cause })
}

/** Puts an exported session into a data directory that no server uses. */
export async function printImport(env: Environment, file: string, options: ImportCommandOptions): Promise<void> {
  const directory = dataDirectoryOf(env, options.dataDir)
  const chunks: AsyncIterable<Buffer> = file === '-' ? process.stdin : createReadStream(file)
  const apiKey = options.apiKeyEnv === undefined ? undefined : env[options.apiKeyEnv]
  if (options.apiKeyEnv !== undefined && (apiKey === undefined || apiKey === ''))
    throw new BrainError(
      'invalid_request',
      `Cannot import ${JSON.stringify(file)}: variable ${options.apiKeyEnv} is not set`,
    )
  const writer = archiveWriter(directory, env['BRAIN_SECRET_KEY'])
  const report = await importSession({
    directory,
    chunks: explained(chunks, file),
    insert: writer.insert,
    beforeCommit: async (session) => {
      if (apiKey !== undefined) await writer.keep(session, apiKey)
    },
  })
  if (options.json === true) return void process.stdout.write(`${JSON.stringify(report)}\n`)
  const { session_id: id, records, status, missing_components: missing } = report
  const lines = [
    `session ${id}: ${records} records, ${status}`,
    ...(apiKey === undefined ? ['its model has no key: turns fail until it is imported with --api-key-env'] : []),
    ...missing.map((component) => `component ${component} is not here: upload it before the session needs it`),
  ]
  process.stdout.write(`${lines.join('\n')}\n`)
}

async function* explained(chunks: AsyncIterable<Buffer>, file: string): AsyncGenerator<Buffer> {
  try {
    yield* chunks
  } catch (cause) {
    throw new BrainError('invalid_request', `Cannot read ${JSON.stringify(file)}: ${messageOf(cause)}`, { cause })
  }
}
