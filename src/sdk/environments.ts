// The published entry `@aexhq/brain/environments`: control of environments, as tools, agentloops, controllers and
// applications have it. Types only.
export type { EnvironmentServices } from './host/environment-services.ts'
export type { BrainEnv, Environment, HostEnv, HttpEnv } from './declare/environments.ts'
export type {
  Availability,
  EnvironmentControlRequest,
  EnvironmentMethod,
  EnvironmentMethods,
  EnvironmentRef,
  EnvironmentState,
  EnvironmentTemplate,
  EnvironmentView,
  Observation,
} from '../contract/environment.ts'
export type { EnvironmentGrant } from '../contract/session-request.ts'
