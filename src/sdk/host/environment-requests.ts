import type { EnvironmentServices } from './environment-services.ts'

/** Each operation on environments as it is asked for (contract 5.4). */
export const environmentRequests: {
  readonly [Operation in keyof EnvironmentServices]: (...args: Parameters<EnvironmentServices[Operation]>) => object
} = {
  list: () => ({ operation: 'list' }),
  get: (environment) => ({ operation: 'get', environment }),
  create: (template, name, configuration) => ({ operation: 'create', template, name, configuration }),
  setup: (environment) => ({ operation: 'setup', environment }),
  update: (environment, configuration) => ({ operation: 'update', environment, configuration }),
  delete: (environment) => ({ operation: 'delete', environment }),
  call: (environment, method, input) => ({ operation: 'call', environment, method, input }),
}
