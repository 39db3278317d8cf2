import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { SessionId } from '../kernel/ids.ts'
import { CALL_LOG_RETENTION_MS, type CallLog, type CallLogs } from './call-log.ts'

/** Call logs as one small file a call, under `directory/{session}`. */
export async function openCallLogDirectory(
  directory: string,
): Promise<CallLogs & { sweep(now: number): Promise<void> }> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const folderOf = (session: SessionId): string => join(directory, session)
  const fileOf = (session: SessionId, sequence: number): string => join(folderOf(session), `${sequence}.json`)
  return {
    async write(session, sequence, log) {
      await mkdir(folderOf(session), { recursive: true, mode: 0o700 })
      await writeWhole(fileOf(session, sequence), JSON.stringify(log))
    },
    async read(session, sequence) {
      const text = await readFile(fileOf(session, sequence), 'utf8').catch(() => undefined)
      return text === undefined ? undefined : (JSON.parse(text) as CallLog)
    },
    async forget(session) {
      await rm(folderOf(session), { recursive: true, force: true })
    },
    async sweep(now) {
      for (const session of await readdir(directory)) await sweepFolder(join(directory, session), now)
    },
  }
}

/** A full disk leaves half a file, which must not be taken for a log. */
async function writeWhole(file: string, text: string): Promise<void> {
  const aside = `${file}.part`
  try {
    await writeFile(aside, text, { mode: 0o600 })
    await rename(aside, file)
  } catch (error) {
    await rm(aside, { force: true })
    throw error
  }
}

async function sweepFolder(folder: string, now: number): Promise<void> {
  const names = await readdir(folder)
  let kept = 0
  for (const name of names) {
    const file = join(folder, name)
    const written = await stat(file).catch(() => undefined)
    if (written !== undefined && now - written.mtimeMs < CALL_LOG_RETENTION_MS) kept++
    else await rm(file, { force: true })
  }
  if (kept === 0) await rm(folder, { recursive: true, force: true })
}
