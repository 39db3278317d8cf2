import { workerData } from 'node:worker_threads'
import { openForWriting } from './open-database.ts'
import type { StoreSettings, WriterCalls } from './protocol.ts'
import { migrate } from './store-format.ts'
import { serveStore } from './store-thread.ts'
import { StoreWriter } from './store-writer.ts'

serveStore<WriterCalls>(() => {
  const database = openForWriting(workerData as StoreSettings)
  migrate(database)
  return new StoreWriter(database)
})
