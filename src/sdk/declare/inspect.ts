import { isPlacedAgentloop, type PlacedAgentloop } from './agentloop.ts'
import { isComponent, type Component } from './component.ts'
import { isEnvironment, type Environment } from './environments.ts'
import { isPlacedTool, type PlacedTool } from './tool.ts'

/** The value as a placed tool, made by a factory of any copy of this package; undefined for anything else. */
export const inspectTool = (value: unknown): PlacedTool | undefined => (isPlacedTool(value) ? value : undefined)

/** The value as a placed agentloop, made by a factory of any copy of this package; undefined for anything else. */
export const inspectAgentloop = (value: unknown): PlacedAgentloop | undefined =>
  isPlacedAgentloop(value) ? value : undefined

/** The value as an environment, made by any copy of this package; undefined for anything else. */
export const inspectEnvironment = (value: unknown): Environment | undefined =>
  isEnvironment(value) ? value : undefined

/** The value as a component, made by any copy of this package; undefined for anything else. */
export const inspectComponent = (value: unknown): Component | undefined => (isComponent(value) ? value : undefined)
