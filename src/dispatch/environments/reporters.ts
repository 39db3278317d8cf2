import { timingSafeEqual } from 'node:crypto'
import type { SessionId } from '../../kernel/ids.ts'
import type { Callback } from '../../contract/environment-protocol.ts'
import type { EnvironmentRef } from '../../contract/environment.ts'

export type ReportersParts = {
  /** Under which environments reach this server. */
  readonly baseUrl: () => string
  /** A keyed digest: the same after a restart, and nobody else can make it. */
  readonly sign: (text: string) => Buffer
}

/** Tokens by which environments report for as long as they exist (contract 5.2). None is kept: each is computed again. */
export class Reporters {
  readonly #parts: ReportersParts

  constructor(parts: ReportersParts) {
    this.#parts = parts
  }

  callback(session: SessionId, { name, sequence }: EnvironmentRef): Callback {
    return {
      url: `${this.#parts.baseUrl()}/v1/sessions/${session}/environments/${encodeURIComponent(name)}/${sequence}/events`,
      token: this.#token(session, { name, sequence }),
      methods: ['emit', 'result'],
    }
  }

  isToken(token: string, session: SessionId, reference: EnvironmentRef): boolean {
    const right = Buffer.from(this.#token(session, reference))
    const given = Buffer.from(token)
    return given.length === right.length && timingSafeEqual(given, right)
  }

  #token(session: SessionId, { name, sequence }: EnvironmentRef): string {
    return `ber_${this.#parts.sign(`reporter\0${session}\0${name}\0${sequence}`).toString('base64url')}`
  }
}
