import type { z } from 'zod'
import type { EnvironmentMethod, EnvironmentMethods } from '../../contract/environment.ts'
import { isPlainObject, membersOf } from '../strict-members.ts'
import { acceptedSchemaOf, outputSchemaOf } from './json-schema.ts'
import { checkDescription, checkIdentifier } from './names.ts'

/** A method of an environment, declared with Zod. Its input and output may be any JSON. */
export type MethodDeclaration = {
  /** 1 to 8192 characters. */
  readonly description: string
  readonly input: z.ZodType
  readonly output?: z.ZodType | undefined
  /** `replace`: what comes of it is another environment under the same name. `none` when absent. */
  readonly effect?: 'none' | 'replace' | undefined
}

const MEMBERS = ['description', 'input', 'output', 'effect']

/**
 * Methods as they are sent (contract 2.1).
 *
 * @param more members that a method may have beside those of {@link MethodDeclaration}
 * @throws TypeError naming the method
 */
export function wireMethodsOf(methods: unknown, what: string, more: readonly string[] = []): EnvironmentMethods {
  if (!isPlainObject(methods)) throw new TypeError(`${what}: methods must be an object with methods by name`)
  return Object.fromEntries(
    Object.entries(methods).map(([name, method]) => {
      checkIdentifier(name, `${what}: the name of a method`)
      return [name, wireMethod(method, `${what}: method "${name}"`, more)]
    }),
  )
}

function wireMethod(method: unknown, what: string, more: readonly string[]): EnvironmentMethod {
  const { description, input, output, effect } = membersOf(method, [...MEMBERS, ...more], what)
  checkDescription(description, what)
  if (effect !== undefined && effect !== 'none' && effect !== 'replace')
    throw new TypeError(`${what}: effect must be "none" or "replace"`)
  return {
    description,
    input_schema: acceptedSchemaOf(what, input as z.ZodType),
    ...(output !== undefined && { output_schema: outputSchemaOf(what, output as z.ZodType) }),
    ...(effect !== undefined && { effect }),
  }
}
