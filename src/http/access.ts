import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { BrainError } from '../kernel/errors.ts'
import { localTenant, type TenantId } from '../kernel/ids.ts'

export type AccessRules = {
  /** Token of the single tenant; undefined on a loopback server without one. */
  readonly token: string | undefined
  /** Host names under which the server may be addressed; against DNS rebinding (design 5). */
  readonly hosts: readonly string[]
  /** Origins of pages that may call the server. */
  readonly corsOrigins: readonly string[]
}

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Decides who a request is from, and refuses what a browser page should not be able to send (design 5). */
export class Access {
  readonly #token: Buffer | undefined
  readonly #hosts: ReadonlySet<string>
  readonly #origins: ReadonlySet<string>

  constructor(rules: AccessRules) {
    this.#token = rules.token === undefined ? undefined : digestOf(rules.token)
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
    reply.header('access-control-allow-headers', 'authorization, content-type, idempotency-key, prefer, last-event-id')
    reply.header('access-control-allow-methods', 'GET, POST, PUT, DELETE, OPTIONS')
  }

  /** @throws BrainError `unauthorized` */
  tenantOf(request: FastifyRequest): TenantId {
    if (this.#token === undefined) return localTenant
    const { authorization } = request.headers
    const given = authorization?.startsWith('Bearer ') === true ? authorization.slice('Bearer '.length) : ''
    if (!timingSafeEqual(digestOf(given), this.#token))
      throw new BrainError(
        'unauthorized',
        'Cannot authenticate: send "Authorization: Bearer" with the token of this server (BRAIN_API_TOKEN)',
      )
    return localTenant
  }
}

/** The host name of a Host header, without port and in lower case. */
function hostNameOf(header: string | undefined): string | undefined {
  const url = `http://${header ?? ''}/`
  return header !== undefined && URL.canParse(url) ? new URL(url).hostname : undefined
}
