import { messageOf } from '../../kernel/errors.ts'
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.ts'
import { deepFrozen } from '../deep-frozen.ts'
import { jsonOf } from '../json-value.ts'
import { isComponent, type Component } from './component.ts'
import type { Environment } from './environments.ts'

/** What runs a tool or loop that is no function here: WebAssembly, or a descriptor that its environment understands. */
export type Implementation<Options> = Component | Readonly<Record<string, unknown>> | ((options: Options) => object)

/** An implementation with its options filled in. */
export type Executable =
  | { readonly type: 'component'; readonly component: Component; readonly configuration: Json }
  | { readonly type: 'descriptor'; readonly descriptor: JsonObject; readonly configuration: Json }

/** @throws TypeError for what is neither component nor descriptor nor function of options */
export function checkImplementation(implementation: unknown, what: string): void {
  if (typeof implementation === 'function' || isComponent(implementation)) return
  descriptorOf(implementation, what)
}

/** @throws TypeError when options or descriptor are not JSON */
export function executableOf(implementation: Implementation<never>, options: unknown, what: string): Executable {
  const configuration = frozenJson(options, 'options', what)
  if (isComponent(implementation)) return Object.freeze({ type: 'component', component: implementation, configuration })
  const given: unknown = typeof implementation === 'function' ? implementation(options as never) : implementation
  return Object.freeze({ type: 'descriptor', descriptor: descriptorOf(given, what), configuration })
}

/** @throws TypeError for a component in an environment that has only been told of descriptors */
export function checkPlace({ type }: Executable, { driver }: Environment, what: string): void {
  if (type === 'component' && driver !== 'brain')
    throw new TypeError(`${what}: a component runs in an env made by brainEnv(); others take descriptors`)
}

function descriptorOf(value: unknown, what: string): JsonObject {
  const descriptor = frozenJson(value, 'implementation', what)
  if (!isJsonObject(descriptor))
    throw new TypeError(`${what}: implementation must be a component(), an object or a function that gives one`)
  return descriptor
}

/** A frozen copy. @throws TypeError for what is no JSON, naming the place in it */
export function frozenJson(value: unknown, name: string, what: string): Json {
  try {
    return deepFrozen(jsonOf(value, name))
  } catch (cause) {
    throw new TypeError(`${what}: ${messageOf(cause)}`, { cause })
  }
}
