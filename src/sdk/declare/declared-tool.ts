import type { z } from 'zod'
import type { ToolMetadata } from '../../contract/session-request.ts'
import type { AnyToolFunction } from '../host/tool-context.ts'
import type { OptionsSchema } from './placement.ts'

/** What stands behind the factory of a tool, whichever copy of the package declared it. */
export type DeclaredTool = {
  /** @throws TypeError for options that JSON Schema cannot say */
  metadata(): ToolMetadata
  /** Of a tool that is a function here; absent for one that something else runs. */
  readonly run?: AnyToolFunction
  readonly input?: z.ZodType
  readonly output?: z.ZodType
  readonly options?: OptionsSchema
}

/** Two copies of the package know each other's factories by it. */
const BRAND = Symbol.for('@aexhq/brain/tool')

/** Puts what was declared behind a factory, and freezes both. */
export const withDeclaration = <Factory extends object>(factory: Factory, declared: DeclaredTool): Factory =>
  Object.freeze(Object.defineProperty(factory, BRAND, { value: Object.freeze(declared) }))

/** What stands behind a factory; undefined for anything else. */
export const declarationOf = (factory: unknown): DeclaredTool | undefined =>
  typeof factory === 'function' && BRAND in factory ? (factory[BRAND] as DeclaredTool) : undefined
