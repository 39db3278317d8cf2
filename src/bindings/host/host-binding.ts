import { z } from 'zod'
import { BrainError } from '../../kernel/errors.ts'
import type { Json } from '../../kernel/json.ts'
import type { HostEnvironment, SessionEnvironment } from '../../contract/session-request.ts'
import { ACCEPTED } from '../../dispatch/environments/environment-operation.ts'
import type { ToolBinding } from '../../dispatch/tool-binding.ts'
import { hostIsNotConnected } from './host.ts'
import type { Hosts } from './hosts.ts'

const implementationSchema = z.strictObject({ type: z.literal('host_function'), name: z.string().min(1).max(128) })

/** Runs tools that are functions of a connected application (contract 4). */
export function hostBinding(hosts: Hosts): ToolBinding {
  return {
    driver: 'host',
    async checkPlacement(_tenant, implementation) {
      parseImplementation(implementation)
    },
    checkEnvironment(tenant, environment) {
      const { name, host_id: id } = hosted(environment)
      if (hosts.find(tenant, id) === undefined)
        throw new BrainError(
          'invalid_request',
          `Cannot create the session: environment "${name}" names host ${JSON.stringify(id.slice(0, 80))}, which is not registered; POST /v1/hosts registers one`,
        )
    },
    async operate({ tenant, place, request }) {
      const { name, host_id: id } = hosted(place.environment)
      if (request.type === 'setup' && hosts.find(tenant, id)?.isConnected !== true)
        throw new BrainError('executor_failed', `Cannot set up environment "${name}": its host is not connected`)
      return ACCEPTED
    },
    start(call, services) {
      const host = hosts.find(call.tenant, hosted(call.place.environment).host_id)
      return host?.start(call, parseImplementation(call.implementation).name, services) ?? hostIsNotConnected()
    },
  }
}

function hosted(environment: SessionEnvironment): HostEnvironment {
  if (environment.driver === 'host') return environment
  throw new Error(`environment "${environment.name}" has driver "${environment.driver}"`)
}

function parseImplementation(implementation: Json): { readonly name: string } {
  const parsed = implementationSchema.safeParse(implementation)
  if (parsed.success) return parsed.data
  throw new BrainError(
    'invalid_request',
    `Cannot place a tool in a host environment: its implementation must be {"type":"host_function","name":…}: ${z.prettifyError(parsed.error)}`,
  )
}
