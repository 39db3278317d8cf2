import { BrainError } from '../kernel/errors.ts'
import type { ComponentId, TenantId } from '../kernel/ids.ts'
import { isJsonObject, type Json } from '../kernel/json.ts'
import type { SessionConfiguration } from '../contract/session-request.ts'
import type { Journal } from '../journal/journal.ts'
import { dataOf } from '../journal/record.ts'
import type { Component, ComponentRole, Components } from '../sandbox/sandbox.ts'

/** The components of a tenant, of one role (contract 1.2, A7, A30). */
export class ComponentRegistry {
  readonly role: ComponentRole
  readonly #components: Components
  readonly #journal: Journal

  constructor(role: ComponentRole, components: Components, journal: Journal) {
    this.role = role
    this.#components = components
    this.#journal = journal
  }

  admit(tenant: TenantId, upload: AsyncIterable<Uint8Array>): Promise<Component> {
    return this.#components.admit(tenant, upload, this.role)
  }

  /** @throws BrainError `not_found` */
  async get(tenant: TenantId, id: ComponentId): Promise<Component> {
    const component = await this.#components.get(tenant, id)
    if (component?.role !== this.role) throw new BrainError('not_found', `Cannot find ${this.role} ${id}`)
    return component
  }

  async list(tenant: TenantId): Promise<readonly Component[]> {
    return (await this.#components.list(tenant)).filter(({ role }) => role === this.role)
  }

  /**
   * Makes sure that a component can be loaded at once (contract 1.2).
   * @throws BrainError `not_found`; `preparation_failed` with the reason; `overloaded`
   */
  async prepare(tenant: TenantId, id: ComponentId): Promise<void> {
    await this.get(tenant, id)
    try {
      await this.#components.ensureArtifact(id)
    } catch (cause) {
      if (!(cause instanceof BrainError) || cause.retryable) throw cause
      const message = `Cannot prepare ${this.role} ${id}: ${cause.message}`
      throw new BrainError('preparation_failed', message, { cause, details: { id, code: cause.code } })
    }
  }

  /** @throws BrainError `not_found`; `conflict` while a session that is not over names the component. */
  async remove(tenant: TenantId, id: ComponentId): Promise<void> {
    await this.get(tenant, id)
    const live = await this.#journal.sessions({ tenant, status: ['creating', 'idle', 'running', 'ending'] })
    for (const row of live) {
      const page = await this.#journal.page(row.id, 0, { limit: 1, maxBytes: 1 })
      const [first] = page.records
      const configuration = first === undefined ? undefined : dataOf(first, 'session_creation_started')
      if (configuration !== undefined && names(configuration, id))
        throw new BrainError(
          'conflict',
          `Cannot delete ${this.role} ${id}: session "${row.id}" uses it; end that session first`,
        )
    }
    await this.#components.remove(tenant, id)
  }
}

function names({ agentloop, tools }: SessionConfiguration, id: ComponentId): boolean {
  const placements = tools.flatMap((tool) => Object.values(tool.placements))
  const implementations: readonly Json[] = [agentloop, ...placements].map(({ implementation }) => implementation)
  return implementations.some((implementation) => isJsonObject(implementation) && implementation['id'] === id)
}
