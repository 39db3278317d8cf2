import { BrainError } from '../../kernel/errors.ts'
import type { Logger } from '../../kernel/logger.ts'
import type { SchemaChecker } from '../../contract/schema-checker.ts'
import type { Bindings } from '../binding-for.ts'
import type { Authority } from './authority.ts'
import type { Callbacks } from './callbacks.ts'
import { EnvironmentControl } from './environment-control.ts'
import { EnvironmentOperations } from './environment-operations.ts'
import { environmentReports } from './environment-reports.ts'
import type { Reporters } from './reporters.ts'

export type EnvironmentsParts = {
  readonly bindings: Bindings
  readonly schemas: SchemaChecker
  readonly callbacks: Callbacks
  readonly reporters: Reporters
  readonly logger: Logger
}

/** Everything that is done to and by environments themselves, beside the calls of tools. */
export type Environments = {
  readonly operations: EnvironmentOperations
  readonly control: EnvironmentControl
  readonly callbacks: Callbacks
  readonly reporters: Reporters
}

export function openEnvironments(parts: EnvironmentsParts): Environments {
  const { callbacks, reporters, schemas } = parts
  const operations = new EnvironmentOperations({
    ...parts,
    services: (session, { environment, reference }) => {
      const grants = environment.environments ?? []
      const authority: Authority = { kind: 'granted', grants, within: reference.name }
      return {
        methods: ['emit', 'result', ...(grants.length > 0 ? ['environments'] : [])],
        async serve(method, input) {
          if (method === 'emit' || method === 'result')
            return environmentReports.call(session, reference, method, input)
          if (method === 'environments') {
            const { reports: budget } = session.environmentWork
            return control.handleText(session, authority, { text: JSON.stringify(input), budget })
          }
          throw new BrainError('invalid_request', `Cannot call ${JSON.stringify(method)} here`)
        },
      }
    },
  })
  const control = new EnvironmentControl({ operations, schemas })
  return { operations, control, callbacks, reporters }
}
