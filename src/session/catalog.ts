import type { TenantId } from '../kernel/ids.ts'
import type { ToolDefinition } from '../contract/message.ts'
import type { ToolService } from '../contract/tool-service.ts'

/** Distributed tools as tenants see them: never where they are, nor how they are opened (seed distributed-tools). */
export class Catalog {
  readonly #services: () => ReadonlyMap<string, ToolService>

  /** @param services the bindings as they are now, by name */
  constructor(services: () => ReadonlyMap<string, ToolService>) {
    this.#services = services
  }

  /** All that a tenant may enable, in the order of the host config. */
  list(tenant: TenantId): readonly ToolDefinition[] {
    return [...this.#services().values()].filter((service) => isOf(service, tenant)).map(toDefinition)
  }

  find(tenant: TenantId, name: string): ToolDefinition | undefined {
    const service = this.#services().get(name)
    return service !== undefined && isOf(service, tenant) ? toDefinition(service) : undefined
  }
}

const isOf = ({ tenants }: ToolService, tenant: TenantId): boolean => tenants?.includes(tenant) ?? true

const toDefinition = ({ name, description, input_schema, output_schema }: ToolService): ToolDefinition => ({
  name,
  description,
  input_schema,
  ...(output_schema === undefined ? {} : { output_schema }),
})
