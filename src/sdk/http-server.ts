// The published entry `@aexhq/brain/http/server`: the bridge between Brain and applications, and a listener. For Node.
export { createHttpEnvironment } from './http/http-environment.ts'
export type { Approval, BridgeCall, HttpEnvironment, HttpEnvironmentOptions } from './http/http-environment.ts'
export type { ApplicationAnswer, ApplicationRequest, SendToApplication } from './http/application-request.ts'
export { serveEnvironment } from './http/serve-environment.ts'
export type { ServedEnvironment, ServeOptions } from './http/serve-environment.ts'
export type { EnvironmentHandler } from './environment/environment-contract.ts'
export type { EnvironmentMethod, EnvironmentMethods } from '../contract/environment.ts'
export type { EnvironmentReceipt, EnvironmentResponse } from '../contract/environment-protocol.ts'
