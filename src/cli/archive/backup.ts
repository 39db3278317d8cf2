import { backupDataDirectory } from '../../archive/backup.ts'
import { archiveJournal } from '../../compose.ts'
import { dataDirectoryOf } from '../data-directory.ts'
import { openProgress } from '../progress.ts'
import { printable } from '../printable.ts'
import type { Environment } from '../environment.ts'
import { stopSignals } from './stop-signals.ts'

export type ArchiveOptions = { readonly dataDir?: string; readonly json?: boolean }

/** Copies the data directory of a server, which may be running, to a new directory, and says what is in it. */
export async function printBackup(env: Environment, directory: string, options: ArchiveOptions): Promise<void> {
  // A moving line is for somebody who watches; a log has no use for it.
  const progress = process.stderr.isTTY ? openProgress(process.stderr) : undefined
  using stop = stopSignals('finish the backup')
  try {
    const report = await backupDataDirectory({
      source: dataDirectoryOf(env, options.dataDir),
      target: directory,
      journal: archiveJournal,
      signal: stop.signal,
      onStep(what) {
        progress?.stop()
        progress?.step(what)
      },
      onDetail: (what) => progress?.detail(what),
    })
    progress?.stop()
    const { sessions, records, files, bytes } = report
    const text = `backup of ${sessions} sessions, ${records} records and ${files} other files (${bytes} bytes), checked, in ${printable(report.directory)}`
    process.stdout.write(`${options.json === true ? JSON.stringify(report) : text}\n`)
  } finally {
    progress?.stop()
  }
}
