import type { z } from 'zod'
import { BEARER_TOKEN } from '../../kernel/bearer-token.ts'
import { messageOf } from '../../kernel/errors.ts'
import type { Json } from '../../kernel/json.ts'
import type { EnvironmentTemplate } from '../../contract/environment.ts'
import type { EnvironmentGrant } from '../../contract/session-request.ts'
import { deepFrozen } from '../deep-frozen.ts'
import { jsonOf } from '../json-value.ts'
import { isPlainObject, membersOf } from '../strict-members.ts'
import { wireMethodsOf, type MethodDeclaration } from './environment-methods.ts'
import { environmentUrlOf } from './environment-url.ts'
import { httpEnv, type HttpEnv } from './environments.ts'
import { acceptedSchemaOf } from './json-schema.ts'
import { checkIdentifier, grantsOf } from './names.ts'
import { parseOptions } from './parse-options.ts'
import { checkOptionsSchema, type OptionsOf, type OptionsSchema } from './placement.ts'

/** Environments that may be made from a declared one while a session goes on. */
export type TemplateDeclaration = {
  /** How many may be there at once, at least 1. */
  readonly maxInstances: number
  /** What the configuration of one of them must be. */
  readonly configuration: z.ZodType
}

type GivenOptions<Schema> = Schema extends z.ZodType ? z.input<Schema> : unknown

/** What a factory of `environment()` is called with: a name, and the options of its schema. */
export type EnvironmentPlacement<Options> = {
  readonly name: string
  /** What the environment itself may do with other environments. */
  readonly environments?: readonly EnvironmentGrant[]
  readonly template?: TemplateDeclaration
} & GivenOptions<Options>

/** Makes an environment with a name and options. */
export type EnvironmentFactory<Options> = (placement: EnvironmentPlacement<Options>) => HttpEnv

const MEMBERS = ['url', 'credential', 'configure', 'options', 'methods']
const RESERVED = ['name', 'environments', 'template']
const MOST_CREDENTIAL = 16_384

/**
 * Declares an environment that something else runs: a service that Brain asks over HTTP to prepare it, to run tools and
 * agentloops in it, and to call its methods (contract 5). Place tools in what the factory gives.
 *
 * @param declaration `url`: https, or http to a literal loopback address, without credentials, query and fragment;
 * `credential`: what Brain shows there as a bearer, at most 16384 characters, never journalled; `options`: an object
 * schema of what the factory takes beside `name`, `environments` and `template`; `configure`: makes the configuration of
 * parsed options, which are the configuration themselves when it is absent; `methods`: what else it can be asked, by name
 * @throws TypeError naming what cannot be used. The factory throws TypeError for wrong options.
 */
export function environment<Options extends OptionsSchema | undefined = undefined>(declaration: {
  readonly url: string | URL
  readonly credential?: string
  readonly options?: Options
  readonly configure?: (options: OptionsOf<Options>) => unknown
  readonly methods?: Readonly<Record<string, MethodDeclaration>>
}): EnvironmentFactory<Options> {
  const what = 'Cannot declare an environment'
  membersOf(declaration, MEMBERS, what)
  const { credential, options: schema, configure } = declaration
  const url = environmentUrlOf(declaration.url, `${what}: url`)
  if (credential !== undefined) checkCredential(credential, what)
  if (configure !== undefined && typeof configure !== 'function')
    throw new TypeError(`${what}: configure must be a function of options`)
  checkOptionsSchema(schema, what, RESERVED)
  const methods = declaration.methods && wireMethodsOf(declaration.methods, what)
  const factory = (placement: unknown): HttpEnv => {
    const { wrong, name, environments, template, given } = partsOf(placement)
    const options = deepFrozen(parseOptions(given, schema, wrong))
    const hasConfiguration = schema !== undefined || configure !== undefined
    const configured: unknown = configure === undefined ? options : configure(options as OptionsOf<Options>)
    return httpEnv(
      {
        driver: 'http',
        name,
        url,
        ...(hasConfiguration && configured !== undefined && { configuration: configurationOf(configured, wrong) }),
        ...(methods && { methods }),
        ...(template !== undefined && { template: templateOf(template, wrong) }),
        ...grantsOf(environments as readonly EnvironmentGrant[] | undefined, wrong),
      },
      credential,
    )
  }
  return Object.freeze(factory)
}

function checkCredential(credential: unknown, what: string): void {
  const isRight =
    typeof credential === 'string' && credential.length <= MOST_CREDENTIAL && BEARER_TOKEN.test(credential)
  if (!isRight)
    throw new TypeError(
      `${what}: credential must be 1 to ${MOST_CREDENTIAL} ASCII characters without blanks, to go into a header`,
    )
}

function partsOf(placement: unknown) {
  if (!isPlainObject(placement)) throw new TypeError('Cannot place an environment: give an object: { name, …options }')
  const { name, environments, template, ...given } = placement
  checkIdentifier(name, 'Cannot place an environment: name')
  return { wrong: `Cannot place environment "${name}"`, name, environments, template, given }
}

function configurationOf(value: unknown, what: string): Json {
  try {
    return jsonOf(value, 'configuration')
  } catch (cause) {
    throw new TypeError(`${what}: ${messageOf(cause)}`, { cause })
  }
}

function templateOf(template: unknown, what: string): EnvironmentTemplate {
  const { maxInstances, configuration } = membersOf(template, ['maxInstances', 'configuration'], `${what}: template`)
  if (typeof maxInstances !== 'number' || !Number.isSafeInteger(maxInstances) || maxInstances < 1)
    throw new TypeError(`${what}: template: maxInstances must be a whole number of at least 1`)
  const configuration_schema = acceptedSchemaOf(`${what}: template: configuration`, configuration as z.ZodType)
  return { max_instances: maxInstances, configuration_schema }
}
