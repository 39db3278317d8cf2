// The published entry `@aexhq/brain/environments`: control of environments, as tools, agentloops, controllers and
// applications have it. Types only.
export type { EnvironmentRef, EnvironmentServices, EnvironmentView } from './host/environment-services.ts'
export type {
  BrainEnv,
  Environment,
  EnvironmentMethod,
  EnvironmentTemplate,
  HostEnv,
  HttpEnv,
} from './declare/environments.ts'
export type { EnvironmentGrant } from '../contract/session-request.ts'
