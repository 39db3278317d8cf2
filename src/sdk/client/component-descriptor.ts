import type { Json } from '../../kernel/json.ts'
import type { Role } from './admissions.ts'

/** What the server is told of a component that it has (contract 2.2). An agentloop has its options beside it. */
export const componentDescriptor = (role: Role, id: string, configuration: Json) =>
  role === 'tool'
    ? { type: 'brain_component', entrypoint: 'run', id, configuration }
    : { type: 'brain_component', entrypoint: 'turn', id }
