import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { SessionId, TenantId } from '../kernel/ids.ts'

export type Inspection = {
  /** A bearer that reads the events of the session, until the inspection is closed. */
  readonly token: string
  close(): void
}

const PREFIX = 'bin_'
const digestOf = (token: string): Buffer => createHash('sha256').update(token).digest()

type Entry = { readonly digest: Buffer; readonly tenant: TenantId; readonly over: AbortController }

/** Calls of distributed tools that may read the events of their session while they last (contract A16). */
export class Inspections {
  readonly #open = new Map<SessionId, Set<Entry>>()

  open(tenant: TenantId, session: SessionId): Inspection {
    const token = PREFIX + randomBytes(32).toString('base64url')
    const entry: Entry = { digest: digestOf(token), tenant, over: new AbortController() }
    const entries = this.#open.get(session) ?? new Set()
    this.#open.set(session, entries.add(entry))
    return {
      token,
      close: () => {
        entries.delete(entry)
        if (entries.size === 0 && this.#open.get(session) === entries) this.#open.delete(session)
        entry.over.abort()
      },
    }
  }

  /** Whether a token is one of these, of whatever session and however old. */
  isInspection(token: string): boolean {
    return token.startsWith(PREFIX)
  }

  /** Who reads with a token, and until when; undefined when it does not open this session. */
  find(session: SessionId, token: string): { readonly tenant: TenantId; readonly over: AbortSignal } | undefined {
    const given = digestOf(token)
    for (const { digest, tenant, over } of this.#open.get(session) ?? [])
      if (timingSafeEqual(digest, given)) return { tenant, over: over.signal }
    return undefined
  }
}
