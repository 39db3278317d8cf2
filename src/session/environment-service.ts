import { BrainError } from '../kernel/errors.ts'
import type { SessionId, TenantId } from '../kernel/ids.ts'
import type { Json } from '../kernel/json.ts'
import type { EnvironmentControlRequest, EnvironmentEvent, EnvironmentRef } from '../contract/environment.ts'
import { APPLICATION } from '../dispatch/environments/authority.ts'
import { environmentReports } from '../dispatch/environments/environment-reports.ts'
import type { Environments } from '../dispatch/environments/environments.ts'
import type { LiveSession } from './live-session.ts'
import type { ClaimInHand, Requests } from './requests.ts'
import { assertNotOver } from './session-service.ts'
import type { Sessions } from './sessions.ts'

export type EnvironmentServiceParts = {
  readonly sessions: Sessions
  readonly environments: Environments
  readonly requests: Requests
  readonly assertTakesWork: () => void
}

/** What applications do with environments of their sessions, and what environments themselves say (contract 1.3, 5.2). */
export class EnvironmentService {
  readonly #parts: EnvironmentServiceParts

  constructor(parts: EnvironmentServiceParts) {
    this.#parts = parts
  }

  /** @throws as EnvironmentControl.handle */
  control(tenant: TenantId, id: SessionId, request: EnvironmentControlRequest, claim: ClaimInHand): Promise<Json> {
    return this.#work(tenant, id, claim, (session) =>
      this.#parts.environments.control.handle(session, APPLICATION, request),
    )
  }

  /** Calls a method of an environment, whatever its reference is by now. */
  call(
    tenant: TenantId,
    id: SessionId,
    { environment: name, method, input }: { environment: string; method: string; input: Json },
    claim: ClaimInHand,
  ): Promise<Json> {
    const { control } = this.#parts.environments
    return this.#work(tenant, id, claim, (session) => {
      const environment = control.reference(session, name)
      return control.handle(session, APPLICATION, { operation: 'call', environment, method, input })
    })
  }

  #work(
    tenant: TenantId,
    id: SessionId,
    claim: ClaimInHand,
    work: (session: LiveSession) => Promise<Json>,
  ): Promise<Json> {
    this.#parts.assertTakesWork()
    return this.#parts.sessions.use(tenant, id, async (session) => {
      assertNotOver(session, 'use environments of')
      await this.#parts.requests.claim(claim)
      return work(session)
    })
  }

  /**
   * Compares a token with that of a reporter, where there is a name, or else of an execution.
   * @throws BrainError `not_found`
   */
  assertToken(
    {
      session,
      name,
      sequence,
    }: { readonly session: SessionId; readonly name: string | undefined; readonly sequence: number },
    token: string,
  ): void {
    const { reporters, callbacks } = this.#parts.environments
    if (name === undefined) callbacks.assertToken(session, sequence, token)
    else if (!reporters.isToken(token, session, { name, sequence }))
      throw new BrainError('not_found', `Cannot find environment "${name.slice(0, 128)}" with sequence ${sequence}`)
  }

  /**
   * Commits what the controller of an environment says, by its reporter's token.
   * @returns the sequence @throws BrainError `not_found` for another token, an environment that is gone, a session that
   * is not there
   */
  async report(
    { session: id, ...reference }: { readonly session: SessionId } & EnvironmentRef,
    token: string,
    event: EnvironmentEvent,
  ): Promise<number> {
    this.assertToken({ session: id, ...reference }, token)
    return this.#parts.sessions.useAny(id, (session) => environmentReports.report(session, reference, event))
  }

  /** Serves whoever was given an execution. @returns JSON text @throws as Callbacks.call */
  execute(
    session: SessionId,
    sequence: number,
    request: { readonly token: string; readonly method: string; readonly input: Json },
  ): Promise<string> {
    return this.#parts.environments.callbacks.call(session, sequence, request)
  }
}
