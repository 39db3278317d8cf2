import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openMemoryJournal } from '../../src/journal/memory/memory-journal.ts'
import { openSqliteJournal } from '../../src/journal/sqlite/sqlite-journal.ts'
import { journalContract } from './journal-contract.ts'

journalContract('memory', async (options) => {
  let fault: string | undefined
  const journal = openMemoryJournal({ ...options, fault: () => fault })
  return {
    journal,
    breakWrites: () => void (fault = 'the disk is away'),
    mendWrites: () => void (fault = undefined),
    [Symbol.asyncDispose]: () => journal[Symbol.asyncDispose](),
  }
})

journalContract('sqlite', async (options) => {
  const directory = mkdtempSync(join(tmpdir(), 'brain-journal-'))
  const journal = await openSqliteJournal({ ...options, directory, busyTimeoutMs: 20 })
  let foreign: DatabaseSync | undefined
  return {
    journal,
    // Another process that writes to our database, and does not finish.
    breakWrites() {
      foreign = new DatabaseSync(join(directory, 'journal/journal.sqlite'), { timeout: 5000 })
      foreign.exec('BEGIN IMMEDIATE')
    },
    mendWrites() {
      foreign?.close()
      foreign = undefined
    },
    async [Symbol.asyncDispose]() {
      await journal[Symbol.asyncDispose]()
      rmSync(directory, { recursive: true })
    },
  }
})
