import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { newSessionId, type SessionId } from '../../../src/kernel/ids.ts'
import { forgetOrphans, openCredentials } from '../../../src/session/credentials.ts'

function temporaryDirectory(): string {
  const parent = mkdtempSync(join(tmpdir(), 'brain-credentials-'))
  onTestFinished(() => rmSync(parent, { recursive: true }))
  return parent
}

it('a key file that is not whole is no key: it is refused, naming it, and never sealed with', async () => {
  const directory = join(temporaryDirectory(), 'credentials')
  await openCredentials(directory, undefined)
  const file = join(directory, 'secret-key')
  expect(readFileSync(file)).toHaveLength(32)
  await openCredentials(directory, undefined)
  truncateSync(file, 0)
  await expect(openCredentials(directory, undefined)).rejects.toMatchObject({
    code: 'storage_unavailable',
    message: `Cannot use the key file ${JSON.stringify(file)}: it has 0 bytes and not 32; restore it from a backup, or remove it when no session has credentials yet`,
  })
})

it('`put()` that the disk refuses is the storage’s fault and no defect, names no path, and may be tried again', async () => {
  const directory = join(temporaryDirectory(), 'credentials')
  const credentials = await openCredentials(directory, 'a key of at least 16 characters')
  const session = newSessionId()
  rmSync(directory, { recursive: true })
  await expect(credentials.put(session, 'secret')).rejects.toMatchObject({
    code: 'storage_unavailable',
    retryable: true,
    message: `Cannot keep the credentials of session "${session}": ENOENT: no such file or directory; look at the free space and the modes of the data directory`,
  })
  mkdirSync(directory)
  await credentials.put(session, 'secret')
  expect(await credentials.get(session)).toBe('secret')
  expect(readFileSync(join(directory, `${session}.sealed`), 'latin1')).not.toContain('secret')
})

it('`forgetOrphans()` takes what a crash left before the first record of a session, and nothing else', async () => {
  const directory = join(temporaryDirectory(), 'credentials')
  const credentials = await openCredentials(directory, undefined)
  const [made, orphan, late] = [newSessionId(), newSessionId(), newSessionId()]
  await credentials.put(made, 'one')
  await credentials.put(orphan, 'two')
  const kept = await credentials.sessions()
  // It is being made when the others are looked at.
  await credentials.put(late, 'three')
  const among = { kept, isOrphan: (session: SessionId) => Promise.resolve(session !== made) }
  await forgetOrphans(credentials, { ...among, signal: AbortSignal.abort() })
  expect((await credentials.sessions()).length).toBe(3)
  await forgetOrphans(credentials, { ...among, signal: new AbortController().signal })
  expect((await credentials.sessions()).toSorted()).toEqual([made, late].toSorted())
  expect(await credentials.get(made)).toBe('one')
})
