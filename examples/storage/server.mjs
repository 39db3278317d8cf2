import { resolve } from 'node:path'
import { serveTools, startService } from '../tool-service.mjs'
import { SessionFiles } from './session-files.mjs'

const { BRAIN_TOOLS_KEY, STORAGE_LISTEN, STORAGE_DIR } = process.env

await startService('storage', (stopped) => {
  const files = new SessionFiles(resolve(STORAGE_DIR ?? 'storage-data'))
  return serveTools({
    title: 'storage',
    listen: STORAGE_LISTEN ?? '127.0.0.1:8083',
    token: BRAIN_TOOLS_KEY,
    stopped,
    tools: { write_file: files.write, read_file: files.read, list_files: files.list },
  })
})
