import { workerData } from 'node:worker_threads'
import { openForReading } from './open-database.ts'
import type { ReaderCalls, StoreSettings } from './protocol.ts'
import { StoreReader } from './store-reader.ts'
import { serveStore } from './store-thread.ts'

serveStore<ReaderCalls>(() => new StoreReader(openForReading(workerData as StoreSettings)))
