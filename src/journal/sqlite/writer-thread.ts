import { workerData } from 'node:worker_threads'
import { openForWriting } from './open-database.ts'
import type { StoreSettings, WriterCalls } from './protocol.ts'
import { serveStore } from './store-thread.ts'
import { StoreWriter } from './store-writer.ts'

serveStore<WriterCalls>(() => new StoreWriter(openForWriting(workerData as StoreSettings)))
