import { randomBytes } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { BrainError, messageOf } from '../../kernel/errors.ts'
import type { HostId, SessionId, TenantId } from '../../kernel/ids.ts'

/** What is kept of a host: nothing that opens anything. */
export type KeptHost = {
  readonly id: HostId
  readonly tenant: TenantId
  /** SHA-256 of its token. */
  readonly tokenDigest: Buffer
  readonly sessions: readonly SessionId[]
}

export interface HostStore {
  /** Those that were kept when the store was opened. */
  readonly kept: readonly KeptHost[]
  /** Durable on return. @throws BrainError `storage_unavailable` */
  write(host: KeptHost): Promise<void>
  remove(id: HostId): Promise<void>
}

const SUFFIX = '.json'
const fileSchema = z.strictObject({
  tenant: z.string(),
  token_sha256: z.string().regex(/^[0-9a-f]{64}$/),
  sessions: z.array(z.string()),
})

/** Hosts as one small file each under `directory`, replaced whole. */
export async function openHostStore(directory: string): Promise<HostStore> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const kept: KeptHost[] = []
  for (const name of await readdir(directory)) {
    const path = join(directory, name)
    if (name.startsWith('.')) await rm(path, { force: true })
    else if (name.endsWith(SUFFIX)) kept.push(await readHost(path, name.slice(0, -SUFFIX.length) as HostId))
  }
  return {
    kept,
    async write(host) {
      try {
        await replaceDurably(directory, `${host.id}${SUFFIX}`, textOf(host))
      } catch (cause) {
        throw new BrainError(
          'storage_unavailable',
          'Cannot keep the registration of a host: look at the free space and the modes of the data directory',
          { cause },
        )
      }
    },
    remove: (id) => rm(join(directory, `${id}${SUFFIX}`), { force: true }),
  }
}

const textOf = ({ tenant, tokenDigest, sessions }: KeptHost): string =>
  JSON.stringify({ tenant, token_sha256: tokenDigest.toString('hex'), sessions })

async function readHost(path: string, id: HostId): Promise<KeptHost> {
  try {
    const { tenant, token_sha256: digest, sessions } = fileSchema.parse(JSON.parse(await readFile(path, 'utf8')))
    return {
      id,
      tenant: tenant as TenantId,
      tokenDigest: Buffer.from(digest, 'hex'),
      sessions: sessions as SessionId[],
    }
  } catch (cause) {
    throw new BrainError(
      'storage_unavailable',
      `Cannot read the registration ${JSON.stringify(path)}: ${messageOf(cause)}; restore it from a backup, or remove it and register the application anew`,
      { cause, retryable: false },
    )
  }
}

async function replaceDurably(directory: string, name: string, text: string): Promise<void> {
  const aside = join(directory, `.${randomBytes(12).toString('hex')}`)
  try {
    await using file = await open(aside, 'wx', 0o600)
    await file.writeFile(text)
    await file.sync()
    await rename(aside, join(directory, name))
  } catch (error) {
    await rm(aside, { force: true })
    throw error
  }
  await using entries = await open(directory, 'r')
  await entries.sync()
}
