import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { mkdir, open, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { BrainError, messageOf } from '../kernel/errors.ts'
import type { SessionId } from '../kernel/ids.ts'

/** Keeps the credentials of sessions, apart from the journal and unreadable without the server's key (design 3). */
export interface Credentials {
  /** @throws BrainError `storage_unavailable` */
  put(session: SessionId, secret: string): Promise<void>
  /** @throws BrainError `internal` when there is none, or when it cannot be unsealed. */
  get(session: SessionId): Promise<string>
  forget(session: SessionId): Promise<void>
}

const CIPHER = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16
const KEY_BYTES = 32
const EXCLUSIVE = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW

/** Credentials that can say whose they are. */
export type KeptCredentials = Credentials & {
  /** Sessions that have some. */
  sessions(): Promise<readonly SessionId[]>
  /** A digest that only this key makes, the same after a restart. */
  sign(text: string): Buffer
}

/** Forgets credentials that a crash left before the first record of their session was written. */
export async function forgetOrphans(
  credentials: Credentials,
  among: {
    /** Those that were there before any session could be made. */
    readonly kept: readonly SessionId[]
    readonly isOrphan: (session: SessionId) => Promise<boolean>
    readonly signal: AbortSignal
  },
): Promise<void> {
  for (const session of among.kept) {
    if (among.signal.aborted) return
    if (await among.isOrphan(session)) await credentials.forget(session)
  }
}

const SUFFIX = '.sealed'

/**
 * Sealed files under `directory`, one a session.
 *
 * @param secretKey BRAIN_SECRET_KEY; without it a random key in the 0600 file `secret-key` beside the sealed files.
 */
export async function openCredentials(directory: string, secretKey: string | undefined): Promise<KeptCredentials> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const key = createHash('sha256')
    .update(secretKey ?? (await ownKey(join(directory, 'secret-key'))))
    .digest()
  const signing = createHmac('sha256', key).update('sign').digest()
  const fileOf = (session: SessionId): string => join(directory, `${session}${SUFFIX}`)
  return {
    async put(session, secret) {
      try {
        await writeDurably(fileOf(session), seal(key, session, secret))
      } catch (cause) {
        throw new BrainError(
          'storage_unavailable',
          `Cannot keep the credentials of session "${session}": ${reasonOf(cause)}; look at the free space and the modes of the data directory`,
          { cause },
        )
      }
    },
    async get(session) {
      const sealed = await readFile(fileOf(session)).catch((cause: unknown) => {
        throw new BrainError('internal', `Cannot find the credentials of session "${session}"`, { cause })
      })
      return unseal(key, session, sealed)
    },
    async forget(session) {
      await rm(fileOf(session), { force: true })
    },
    // Another use of the key, and so another key.
    sign: (text) => createHmac('sha256', signing).update(text).digest(),
    async sessions() {
      const names = await readdir(directory)
      return names.filter((name) => name.endsWith(SUFFIX)).map((name) => name.slice(0, -SUFFIX.length) as SessionId)
    },
  }
}

/** Clients are told what failed, and not where the server keeps its files. */
const reasonOf = (error: unknown): string => messageOf(error).replace(/, \w+ '.*$/, '')

async function ownKey(path: string): Promise<Buffer> {
  try {
    const fresh = randomBytes(KEY_BYTES)
    await writeDurably(path, fresh)
    return fresh
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'EEXIST') throw error
    const kept = await readFile(path)
    // A server that was killed while it made the file left an empty one: that would be a key which everybody knows.
    if (kept.length === KEY_BYTES) return kept
    throw new BrainError(
      'storage_unavailable',
      `Cannot use the key file ${JSON.stringify(path)}: it has ${kept.length} bytes and not ${KEY_BYTES}; restore it from a backup, or remove it when no session has credentials yet`,
      { retryable: false },
    )
  }
}

async function writeDurably(path: string, bytes: Buffer): Promise<void> {
  await using file = await open(path, EXCLUSIVE, 0o600)
  try {
    await file.writeFile(bytes)
    await file.sync()
  } catch (error) {
    // Half a file would be taken for a whole one later.
    await rm(path, { force: true })
    throw error
  }
}

function seal(key: Buffer, session: SessionId, secret: string): Buffer {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv(CIPHER, key, iv).setAAD(Buffer.from(session))
  const body = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), body])
}

function unseal(key: Buffer, session: SessionId, sealed: Buffer): string {
  try {
    const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, IV_BYTES)).setAAD(Buffer.from(session))
    decipher.setAuthTag(sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
    return Buffer.concat([decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString('utf8')
  } catch (cause) {
    throw new BrainError(
      'internal',
      `Cannot unseal the credentials of session "${session}": the key is another one (BRAIN_SECRET_KEY) or the file is damaged`,
      { cause },
    )
  }
}
