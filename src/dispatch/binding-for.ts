import { BrainError } from '../kernel/errors.ts'
import type { SessionEnvironment } from '../contract/session-request.ts'
import type { ToolBinding } from './tool-binding.ts'

/** One for each driver that is part of the server. */
export type Bindings = ReadonlyMap<SessionEnvironment['driver'], ToolBinding>

/** What reaches an environment. @throws BrainError `unsupported` for a driver that is not part of this server */
export function bindingFor(bindings: Bindings, { name, driver }: SessionEnvironment): ToolBinding {
  const binding = bindings.get(driver)
  if (binding !== undefined) return binding
  throw new BrainError('unsupported', `Cannot use environment "${name}": driver "${driver}" is not part of this server`)
}
