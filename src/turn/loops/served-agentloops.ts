import { BrainError } from '../../kernel/errors.ts'
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.ts'
import type {
  BuiltinLoopImplementation,
  ComponentLoopImplementation,
  SessionAgentloop,
} from '../../contract/session-request.ts'
import { assertUsable, placeOf } from '../../dispatch/environments/places.ts'
import type { Agentloop, Agentloops } from '../agentloop.ts'
import { builtinLoop } from './builtin/builtin-loop.ts'
import type { ComponentLoops } from './component/component-loops.ts'
import type { RemoteLoops } from './remote/remote-loops.ts'

/** The built-in loop for sessions that ask for no other (contract A2), components, and what environments elsewhere run. */
export class ServedAgentloops implements Agentloops {
  readonly #components: ComponentLoops
  readonly #remote: RemoteLoops

  constructor(components: ComponentLoops, remote: RemoteLoops) {
    this.#components = components
    this.#remote = remote
  }

  check: Agentloops['check'] = async (tenant, asked) => {
    const { implementation } = asked
    const type = isJsonObject(implementation) ? implementation['type'] : undefined
    if (asked.environment?.driver === 'http') return this.#remote.check(implementation)
    switch (type) {
      case 'builtin':
        return checkBuiltin(implementation)
      case 'brain_component':
        return this.#components.check(tenant, asked)
      default:
        throw new BrainError(
          'unsupported',
          'Cannot create the session: agentloop.implementation must be {"type":"builtin","name":"default"} or ' +
            '{"type":"brain_component","entrypoint":"turn","id":…}; without agentloop the built-in one runs, and environments with driver "http" take what they understand',
        )
    }
  }

  of: Agentloops['of'] = (session): Agentloop => {
    const { implementation, environment: name } = session.configuration.agentloop
    const entry = name === undefined ? undefined : session.state.environments.get(name)
    const place = entry && placeOf(session, entry)
    if (place?.environment.driver === 'http') {
      const loop = this.#remote.of(implementation as JsonObject, place)
      return {
        async run(...about) {
          if (entry !== undefined) assertUsable(entry, 'run the agentloop')
          return loop.run(...about)
        },
      }
    }
    if (isBuiltin(implementation)) return builtinLoop
    return this.#components.of(implementation as ComponentLoopImplementation, place)
  }
}

const isBuiltin = (implementation: SessionAgentloop['implementation']): boolean => implementation['type'] === 'builtin'

function checkBuiltin(implementation: Json): BuiltinLoopImplementation {
  const name = isJsonObject(implementation) ? implementation['name'] : undefined
  if (name !== 'default')
    throw new BrainError(
      'invalid_request',
      `Cannot create the session: there is no built-in agentloop ${JSON.stringify(name)}: its name is "default"`,
    )
  return { type: 'builtin', name }
}
