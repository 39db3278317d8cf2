import { DatabaseSync } from 'node:sqlite'
import type { StoreSettings } from './protocol.ts'
import { migrate, requireOurFormat } from './store-format.ts'

const PAGE_CACHE_KIB = 16 * 1024
/** A write-ahead log that grew beyond this is cut back when it starts over. */
const WAL_KEPT_BYTES = 64 * 1024 * 1024

/**
 * The one connection that writes, on a database in the format of this code. FULL syncs the log at every commit (J3). Checkpoints are the writer's own decision,
 * after it has answered (`StoreWriter.tidy`), so no append waits for one that its own commit caused.
 *
 * @throws Error saying why the database cannot be used; one that is not ours is unchanged then.
 */
export function openForWriting(settings: StoreSettings): DatabaseSync {
  const database = new DatabaseSync(settings.path, { timeout: settings.busyTimeoutMs })
  try {
    // Before the first pragma: that one already rewrites the header.
    requireOurFormat(database)
    database.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      PRAGMA wal_autocheckpoint = 0;
      PRAGMA journal_size_limit = ${WAL_KEPT_BYTES};
      PRAGMA cache_size = -${PAGE_CACHE_KIB};
    `)
    migrate(database)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

export function openForReading(settings: StoreSettings): DatabaseSync {
  const database = new DatabaseSync(settings.path, { readOnly: true, timeout: settings.busyTimeoutMs })
  database.exec(`PRAGMA cache_size = -${PAGE_CACHE_KIB}`)
  return database
}
