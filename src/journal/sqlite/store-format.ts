import type { DatabaseSync } from 'node:sqlite'

/** "Brai" in ASCII: tells our files from other SQLite databases. */
const APPLICATION_ID = 0x42726169

/**
 * A record's key is its session's number and its sequence in one 64-bit rowid, so the records of a session lie together,
 * in order, in the leaves of one tree. (A WITHOUT ROWID table would move every record beyond a quarter page out to
 * overflow pages.)
 *
 * Texts that clients choose (claim keys, label values) are kept printed as JSON: UTF-8 cannot carry lone surrogates.
 */
const FIRST_FORMAT = `
  CREATE TABLE sessions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    status TEXT NOT NULL,
    last_sequence INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    labels TEXT NOT NULL
  ) STRICT;
  CREATE INDEX sessions_of_tenant ON sessions (tenant, id);
  CREATE INDEX sessions_in_motion ON sessions (status, id) WHERE status IN ('creating', 'running', 'ending');
  CREATE TABLE labels (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (tenant, key, value, id)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    type TEXT NOT NULL,
    data TEXT NOT NULL,
    origin TEXT
  ) STRICT;
  CREATE TABLE removed (number INTEGER PRIMARY KEY) STRICT;
  CREATE TABLE claims (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    claimed_at INTEGER NOT NULL,
    answered_at INTEGER,
    answer TEXT,
    PRIMARY KEY (scope, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX claims_by_age ON claims (claimed_at);
  CREATE TABLE probe (id INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT;
`

/**
 * Calls without an end, by the key of their start: what a crash left open is found without reading journals. Triggers,
 * so that whatever writes records keeps it.
 */
const OPEN_CALLS = `
  CREATE TABLE open_calls (id INTEGER PRIMARY KEY) STRICT;
  INSERT INTO open_calls SELECT id FROM records WHERE type = 'tool_call_started';
  DELETE FROM open_calls WHERE id IN (
    SELECT id >> 32 << 32 | json_extract(data, '$.sequence') FROM records
    WHERE type IN ('tool_call_ended', 'tool_call_failed') AND json_valid(data));
  CREATE TRIGGER call_started AFTER INSERT ON records WHEN new.type = 'tool_call_started'
    BEGIN INSERT INTO open_calls VALUES (new.id); END;
  CREATE TRIGGER call_ended AFTER INSERT ON records WHEN new.type IN ('tool_call_ended', 'tool_call_failed')
    BEGIN DELETE FROM open_calls WHERE id = new.id >> 32 << 32 | json_extract(new.data, '$.sequence'); END;
  CREATE TRIGGER call_purged AFTER DELETE ON records WHEN old.type = 'tool_call_started'
    BEGIN DELETE FROM open_calls WHERE id = old.id; END;
`

/** Entry n leads from format n to format n + 1. Formats only grow; entries are never edited once released. */
const MIGRATIONS: readonly ((database: DatabaseSync) => void)[] = [
  (database) => database.exec(FIRST_FORMAT),
  (database) => database.exec(OPEN_CALLS),
]

/** The format that this code reads and writes. */
export const STORE_FORMAT = MIGRATIONS.length

function pragma(database: DatabaseSync, name: 'application_id' | 'user_version'): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name])
}

const isEmpty = (database: DatabaseSync): boolean =>
  database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined

/**
 * Reads nothing but the header and the schema, and changes nothing.
 *
 * @throws Error saying why the database is not ours to use.
 */
export function requireOurFormat(database: DatabaseSync): void {
  const application = pragma(database, 'application_id')
  const format = pragma(database, 'user_version')
  const isFresh = application === 0 && format === 0 && isEmpty(database)
  if (application !== APPLICATION_ID && !isFresh) throw new Error('it is a SQLite database of another application')
  if (format > STORE_FORMAT)
    throw new Error(
      `its format ${format} is newer than format ${STORE_FORMAT} that this version of Brain knows: run the newer version`,
    )
}

/** Brings a database of ours to the format of this code, in one transaction; an empty one is filled. */
export function migrate(database: DatabaseSync): void {
  const format = pragma(database, 'user_version')
  if (format === STORE_FORMAT) return
  database.exec('BEGIN IMMEDIATE')
  try {
    for (const step of MIGRATIONS.slice(format)) step(database)
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${STORE_FORMAT}; COMMIT`)
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}
