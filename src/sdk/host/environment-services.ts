import type { Json } from '../../kernel/json.ts'
import type { EnvironmentRef, EnvironmentView } from '../../contract/environment.ts'
import { quietly } from '../quietly.ts'

/** Control of environments, within what the caller was granted; the server refuses the rest. */
export interface EnvironmentServices {
  list(): Promise<readonly EnvironmentView[]>
  get(environment: EnvironmentRef): Promise<EnvironmentView>
  /** Makes an environment from a template. */
  create(template: string, name: string, configuration: unknown): Promise<EnvironmentView>
  setup(environment: EnvironmentRef): Promise<EnvironmentView>
  update(environment: EnvironmentRef, configuration: unknown): Promise<EnvironmentView>
  delete(environment: EnvironmentRef): Promise<EnvironmentView>
  /** Calls a method that the environment declared. @returns what it gave */
  call(environment: EnvironmentRef, method: string, input: unknown): Promise<Json>
}

/** Services over whatever takes control requests there. */
export function environmentServices(control: (request: object) => Promise<unknown>): EnvironmentServices {
  const ask = <Answer>(request: object): Promise<Answer> => quietly(control(request) as Promise<Answer>)
  return Object.freeze<EnvironmentServices>({
    list: () => ask({ operation: 'list' }),
    get: (environment) => ask({ operation: 'get', environment }),
    create: (template, name, configuration) => ask({ operation: 'create', template, name, configuration }),
    setup: (environment) => ask({ operation: 'setup', environment }),
    update: (environment, configuration) => ask({ operation: 'update', environment, configuration }),
    delete: (environment) => ask({ operation: 'delete', environment }),
    call: (environment, method, input) => ask({ operation: 'call', environment, method, input }),
  })
}
