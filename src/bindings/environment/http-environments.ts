import { messageOf } from '../../kernel/errors.ts'
import type { SessionId, TenantId } from '../../kernel/ids.ts'
import { guardedRequest } from '../../kernel/net/guarded-request.ts'
import type { Logger } from '../../kernel/logger.ts'
import {
  type Callback,
  ENVIRONMENT_CONTRACT,
  type EnvironmentCommand,
  type EnvironmentReceipt,
  type EnvironmentRequest,
} from '../../contract/environment-protocol.ts'
import type { Limits } from '../../contract/limits.ts'
import type { HttpEnvironment } from '../../contract/session-request.ts'
import type { Place } from '../../dispatch/environments/environment-operation.ts'
import { readAnswer } from './environment-answer.ts'
import type { EnvironmentUrls } from './environment-urls.ts'

export type HttpEnvironmentsParts = {
  /** What each tenant's environments may be at. */
  readonly urls: (tenant: TenantId) => EnvironmentUrls
  /** The credential of a declared environment, if it has one. */
  readonly credentialOf: (session: SessionId, environment: string) => Promise<string | undefined>
  readonly limits: Limits
  readonly logger: Logger
}

export type Sending = {
  readonly tenant: TenantId
  readonly session: SessionId
  readonly place: Place
  readonly sequence: number
  readonly request: EnvironmentRequest
  readonly context?: Callback
  readonly reporter?: Callback
  /** Milliseconds for the whole operation; undefined = none. Default: BRAIN_MAX_ENVIRONMENT_SECS. */
  readonly totalMs?: number | undefined
  readonly signal?: AbortSignal
}

/** Nobody is told more: what a server can reach from where it stands is none of its callers' business (contract A26). */
export const NOT_REACHED: EnvironmentReceipt & { type: 'unknown' } = {
  type: 'unknown',
  message: 'The environment could not be asked, or gave no answer of the contract environment/v1',
}

/** Environments that speak `environment/v1` over HTTP (contract 5.1). */
export class HttpEnvironments {
  readonly #parts: HttpEnvironmentsParts

  constructor(parts: HttpEnvironmentsParts) {
    this.#parts = parts
  }

  /** @throws BrainError `invalid_request` */
  check(tenant: TenantId, { name, url }: HttpEnvironment): void {
    this.#parts.urls(tenant).check(name, url)
  }

  /** Sends one operation, once. Never rejects: what is in doubt is `unknown`. */
  async send(sending: Sending): Promise<EnvironmentReceipt> {
    try {
      return (await this.#send(sending)) ?? NOT_REACHED
    } catch (error) {
      const { session, place, sequence } = sending
      this.#parts.logger.warn(
        { session, environment: place.reference.name, sequence, error: messageOf(error) },
        'an environment was not reached',
      )
      return NOT_REACHED
    }
  }

  async #send({
    tenant,
    session,
    place,
    sequence,
    request,
    signal,
    ...more
  }: Sending): Promise<EnvironmentReceipt | undefined> {
    const { urls, credentialOf, limits } = this.#parts
    const { url, isFit } = urls(tenant).open(placedElsewhere(place).url)
    const credential = await credentialOf(session, place.template)
    signal?.throwIfAborted()
    const answer = await guardedRequest({
      url: operationsOf(url),
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
      },
      body: JSON.stringify(commandOf(session, place, sequence, { request, ...more })),
      isFit,
      connectMs: limits.environmentConnectSecs * 1000,
      totalMs: 'totalMs' in more ? more.totalMs : unlessUnlimited(limits.environmentSecs),
      mostBytes: limits.environmentResponseBytes,
      ...(signal === undefined ? {} : { signal }),
    })
    const isWell = answer.status >= 200 && answer.status < 300
    return isWell ? readAnswer(answer.body, sequence) : undefined
  }
}

const unlessUnlimited = (seconds: number): number | undefined => (seconds === 0 ? undefined : seconds * 1000)

/** A session declares these; another driver's would be a defect. */
export function placedElsewhere({ environment }: Place): HttpEnvironment {
  if (environment.driver === 'http') return environment
  throw new Error(`environment "${environment.name}" has driver "${environment.driver}"`)
}

function operationsOf(url: URL): URL {
  const operations = new URL(url)
  operations.pathname = `${url.pathname.replace(/\/+$/, '')}/v1/operations`
  return operations
}

function commandOf(
  session: SessionId,
  { environment, reference, template }: Place,
  sequence: number,
  { request, context, reporter }: Pick<Sending, 'request' | 'context' | 'reporter'>,
): EnvironmentCommand {
  return {
    contract: ENVIRONMENT_CONTRACT,
    operation: {
      session_id: session,
      environment: reference.name,
      sequence,
      binding: reference,
      configuration: environment.configuration,
      ...(template === reference.name ? {} : { template }),
      ...(context === undefined ? {} : { context }),
      ...(reporter === undefined ? {} : { reporter }),
      request,
    },
  }
}
