import type { DatabaseSync } from 'node:sqlite'

const SQL = {
  begin: 'BEGIN IMMEDIATE',
  commit: 'COMMIT',

  findSession: 'SELECT number, tenant, last_sequence, last_at FROM sessions WHERE id = ?',
  insertSession: 'INSERT INTO sessions (id, tenant, status, last_sequence, last_at, labels) VALUES (?, ?, ?, 0, 0, ?)',
  insertLabel: 'INSERT INTO labels (tenant, key, value, id) VALUES (?, ?, ?, ?)',
  insertRecord: 'INSERT INTO records (id, at, type, data, origin) VALUES ((?1 << 32) | ?2, ?3, ?4, ?5, ?6)',
  // Apart from `advanceTo`, so that the many appends which leave the status alone do not touch its index.
  advance: 'UPDATE sessions SET last_sequence = ?, last_at = ? WHERE number = ?',
  advanceTo: 'UPDATE sessions SET last_sequence = ?, last_at = ?, status = ? WHERE number = ?',

  removeSession: 'DELETE FROM sessions WHERE number = ? RETURNING labels',
  removeLabel: 'DELETE FROM labels WHERE tenant = ? AND key = ? AND value = ? AND id = ?',
  insertRemoved: 'INSERT INTO removed (number) VALUES (?)',
  nextRemoved: 'SELECT number FROM removed LIMIT 1',
  purge: `DELETE FROM records WHERE id IN
    (SELECT id FROM records WHERE id BETWEEN ?1 << 32 AND (?1 << 32) | 0xffffffff LIMIT ?2)`,
  forgetRemoved: 'DELETE FROM removed WHERE number = ?',

  findClaim: 'SELECT digest, answer FROM claims WHERE scope = ? AND key = ?',
  insertClaim: 'INSERT INTO claims (scope, key, digest, claimed_at) VALUES (?, ?, ?, ?)',
  settle: 'UPDATE claims SET answered_at = ?, answer = ? WHERE scope = ? AND key = ? AND answer IS NULL',
  release: 'DELETE FROM claims WHERE scope = ? AND key = ? AND answer IS NULL',
  expire: `DELETE FROM claims WHERE (scope, key) IN (
    SELECT scope, key FROM claims WHERE claimed_at < ?1
      AND (answered_at < ?1 OR (answered_at IS NULL AND claimed_at < ?2)) LIMIT ?3)`,

  probe: 'INSERT OR REPLACE INTO probe (id, at) VALUES (1, ?)',

  measureLog: 'PRAGMA wal_checkpoint(NOOP)',
  checkpoint: 'PRAGMA wal_checkpoint(PASSIVE)',
} as const

/** Every statement of the writer, prepared once. */
export const prepareWrites = (database: DatabaseSync) => ({
  begin: database.prepare(SQL.begin),
  commit: database.prepare(SQL.commit),
  findSession: database.prepare(SQL.findSession),
  insertSession: database.prepare(SQL.insertSession),
  insertLabel: database.prepare(SQL.insertLabel),
  insertRecord: database.prepare(SQL.insertRecord),
  advance: database.prepare(SQL.advance),
  advanceTo: database.prepare(SQL.advanceTo),
  removeSession: database.prepare(SQL.removeSession),
  removeLabel: database.prepare(SQL.removeLabel),
  insertRemoved: database.prepare(SQL.insertRemoved),
  nextRemoved: database.prepare(SQL.nextRemoved),
  purge: database.prepare(SQL.purge),
  forgetRemoved: database.prepare(SQL.forgetRemoved),
  findClaim: database.prepare(SQL.findClaim),
  insertClaim: database.prepare(SQL.insertClaim),
  settle: database.prepare(SQL.settle),
  release: database.prepare(SQL.release),
  expire: database.prepare(SQL.expire),
  probe: database.prepare(SQL.probe),
  measureLog: database.prepare(SQL.measureLog),
  checkpoint: database.prepare(SQL.checkpoint),
})
export type Writes = ReturnType<typeof prepareWrites>
