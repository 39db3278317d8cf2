import type { Json } from '../../kernel/json.ts'
import type { EnvironmentRef, EnvironmentView } from '../../contract/environment.ts'
import { quietly } from '../quietly.ts'
import { environmentRequests } from './environment-requests.ts'

/**
 * Control of environments, within what the caller was granted; the server refuses the rest with a BrainError. A reference
 * is that of one time: after a replacement the old one is refused.
 */
export interface EnvironmentServices {
  /** All that the caller may read. */
  list(): Promise<readonly EnvironmentView[]>
  /** One of them, as it is now. @throws BrainError `not_found` */
  get(environment: EnvironmentRef): Promise<EnvironmentView>
  /** Makes an environment from a template. */
  create(template: string, name: string, configuration: unknown): Promise<EnvironmentView>
  /** Sets up one that is declared, or whose setup failed. */
  setup(environment: EnvironmentRef): Promise<EnvironmentView>
  /** Gives it another configuration. */
  update(environment: EnvironmentRef, configuration: unknown): Promise<EnvironmentView>
  /** Takes it down for good. */
  delete(environment: EnvironmentRef): Promise<EnvironmentView>
  /** Calls a method that the environment declared. @returns what it gave */
  call(environment: EnvironmentRef, method: string, input: unknown): Promise<Json>
}

/** Services over whatever takes control requests there. */
export function environmentServices(control: (request: object) => Promise<unknown>): EnvironmentServices {
  const ask = <Answer>(request: object): Promise<Answer> => quietly(control(request) as Promise<Answer>)
  const { list, get, create, setup, update, delete: remove, call } = environmentRequests
  return Object.freeze<EnvironmentServices>({
    list: () => ask(list()),
    get: (environment) => ask(get(environment)),
    create: (template, name, configuration) => ask(create(template, name, configuration)),
    setup: (environment) => ask(setup(environment)),
    update: (environment, configuration) => ask(update(environment, configuration)),
    delete: (environment) => ask(remove(environment)),
    call: (environment, method, input) => ask(call(environment, method, input)),
  })
}
