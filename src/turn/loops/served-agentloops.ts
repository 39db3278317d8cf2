import { BrainError } from '../../kernel/errors.ts'
import { isJsonObject, type Json } from '../../kernel/json.ts'
import type { BuiltinLoopImplementation } from '../../contract/session-request.ts'
import type { Agentloop, Agentloops } from '../agentloop.ts'
import { builtinLoop } from './builtin/builtin-loop.ts'
import type { ComponentLoops } from './component/component-loops.ts'

/** The built-in loop for sessions that ask for no other (contract A2), and components. */
export class ServedAgentloops implements Agentloops {
  readonly #components: ComponentLoops

  constructor(components: ComponentLoops) {
    this.#components = components
  }

  check: Agentloops['check'] = async (tenant, asked) => {
    const { implementation } = asked
    const type = isJsonObject(implementation) ? implementation['type'] : undefined
    switch (type) {
      case 'builtin':
        return checkBuiltin(implementation)
      case 'brain_component':
        return this.#components.check(tenant, asked)
      default:
        throw new BrainError(
          'unsupported',
          'Cannot create the session: agentloop.implementation must be {"type":"builtin","name":"default"} or ' +
            '{"type":"brain_component","entrypoint":"turn","id":…}; without agentloop the built-in one runs',
        )
    }
  }

  of: Agentloops['of'] = (configuration): Agentloop => {
    const { implementation } = configuration.agentloop
    return implementation.type === 'builtin' ? builtinLoop : this.#components.of(implementation, configuration)
  }
}

function checkBuiltin(implementation: Json): BuiltinLoopImplementation {
  const name = isJsonObject(implementation) ? implementation['name'] : undefined
  if (name !== 'default')
    throw new BrainError(
      'invalid_request',
      `Cannot create the session: there is no built-in agentloop ${JSON.stringify(name)}: its name is "default"`,
    )
  return { type: 'builtin', name }
}
