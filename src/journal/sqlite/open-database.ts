import { DatabaseSync } from 'node:sqlite'
import type { StoreSettings } from './protocol.ts'

const PAGE_CACHE_KIB = 16 * 1024
/** A write-ahead log that grew beyond this is cut back when it starts over. */
const WAL_KEPT_BYTES = 64 * 1024 * 1024

/**
 * The one connection that writes. FULL syncs the log at every commit (J3). Checkpoints are the writer's own decision,
 * after it has answered (`StoreWriter.tidy`), so no append waits for one that its own commit caused.
 */
export function openForWriting(settings: StoreSettings): DatabaseSync {
  const database = new DatabaseSync(settings.path, { timeout: settings.busyTimeoutMs })
  database.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA journal_size_limit = ${WAL_KEPT_BYTES};
    PRAGMA cache_size = -${PAGE_CACHE_KIB};
  `)
  return database
}

export function openForReading(settings: StoreSettings): DatabaseSync {
  const database = new DatabaseSync(settings.path, { readOnly: true, timeout: settings.busyTimeoutMs })
  database.exec(`PRAGMA cache_size = -${PAGE_CACHE_KIB}`)
  return database
}
