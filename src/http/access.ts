import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { BrainError } from '../kernel/errors.ts'
import type { TenantId } from '../kernel/ids.ts'

type Tenant = { readonly id: TenantId; readonly tokens: readonly string[] }

export type AccessRules = {
  /** Whose tokens open what, as it is now; a single tenant without one is whoever reaches a loopback server. */
  readonly tenants: () => readonly Tenant[]
  /** Host names under which the server may be addressed; against DNS rebinding (design 5). */
  readonly hosts: readonly string[]
  /** Origins of pages that may call the server. */
  readonly corsOrigins: readonly string[]
}

/** What pages may send: headers of the API, then those of MCP. */
const ALLOWED_HEADERS =
  'authorization, content-type, idempotency-key, prefer, last-event-id, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name'

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Decides who a request is from, and refuses what a browser page should not be able to send (design 5). */
export class Access {
  readonly #tenants: () => readonly Tenant[]
  #known: Known
  readonly #hosts: ReadonlySet<string>
  readonly #origins: ReadonlySet<string>

  constructor(rules: AccessRules) {
    this.#tenants = rules.tenants
    this.#known = knownOf(rules.tenants())
    this.#hosts = new Set(rules.hosts)
    this.#origins = new Set(rules.corsOrigins)
  }

  /** @throws BrainError `forbidden_host`, `forbidden_origin` */
  checkSource(request: FastifyRequest, reply: FastifyReply): void {
    const host = hostNameOf(request.headers.host)
    if (host === undefined || !this.#hosts.has(host))
      throw new BrainError(
        'forbidden_host',
        `Cannot serve host ${JSON.stringify(host ?? '')}: this server answers for ${[...this.#hosts].join(', ')}; set BRAIN_PUBLIC_URL to add its public name`,
      )
    const { origin } = request.headers
    const site = request.headers['sec-fetch-site']
    if (origin === undefined && (site === undefined || site === 'same-origin' || site === 'none')) return
    if (origin === undefined || !this.#origins.has(origin))
      throw new BrainError(
        'forbidden_origin',
        `Cannot serve a page of origin ${JSON.stringify(origin ?? '')}: list it in BRAIN_CORS_ORIGINS`,
      )
    reply.header('access-control-allow-origin', origin).header('vary', 'origin')
    reply.header('access-control-allow-headers', ALLOWED_HEADERS)
    reply.header('access-control-allow-methods', 'GET, POST, PUT, DELETE, OPTIONS')
  }

  /** @throws BrainError `unauthorized` */
  tenantOf(request: FastifyRequest): TenantId {
    const found = this.tenantWith(bearerOf(request))
    if (found !== undefined) return found
    throw new BrainError(
      'unauthorized',
      'Cannot authenticate: send "Authorization: Bearer" with a token of this server (BRAIN_API_TOKEN, or a tenant\'s)',
    )
  }

  /** Who comes with a token, which may be everybody who comes. */
  tenantWith(token: string): TenantId | undefined {
    return this.#now().everybody ?? this.ownerOf(token)
  }

  /** Whose token this is, if it is anybody's. */
  ownerOf(token: string): TenantId | undefined {
    const given = digestOf(token)
    let found: TenantId | undefined
    // Every token is compared, whichever fits: how long that takes tells nothing.
    for (const { digest, tenant } of this.#now().tokens) if (timingSafeEqual(given, digest)) found = tenant
    return found
  }

  /** Whether there is such a tenant. */
  knows(tenant: TenantId): boolean {
    return this.#now().tenants.some(({ id }) => id === tenant)
  }

  #now(): Known {
    const tenants = this.#tenants()
    if (tenants !== this.#known.tenants) this.#known = knownOf(tenants)
    return this.#known
  }
}

/** Tenants with what their tokens are compared by. */
type Known = {
  readonly tenants: readonly Tenant[]
  readonly tokens: readonly { readonly digest: Buffer; readonly tenant: TenantId }[]
  /** Who everybody is where there are no tokens. */
  readonly everybody: TenantId | undefined
}

function knownOf(tenants: readonly Tenant[]): Known {
  const tokens = tenants.flatMap(({ id: tenant, tokens: own }) =>
    own.map((token) => ({ digest: digestOf(token), tenant })),
  )
  return { tenants, tokens, everybody: tokens.length === 0 ? tenants[0]?.id : undefined }
}

/** The bearer token of a request; empty when there is none. */
export function bearerOf({ headers: { authorization } }: FastifyRequest): string {
  return authorization?.startsWith('Bearer ') === true ? authorization.slice('Bearer '.length) : ''
}

/** The host name of a Host header, without port and in lower case. */
function hostNameOf(header: string | undefined): string | undefined {
  const url = `http://${header ?? ''}/`
  return header !== undefined && URL.canParse(url) ? new URL(url).hostname : undefined
}
