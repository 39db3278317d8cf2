import { clip } from '../../kernel/errors.ts'
import type { Json, JsonObject } from '../../kernel/json.ts'
import { parseOrigin } from '../../contract/network-origin.ts'
import type { EnvironmentMethods, EnvironmentTemplate } from '../../contract/environment.ts'
import type { BrainEnvConfiguration, EnvironmentGrant } from '../../contract/session-request.ts'
import { deepFrozen } from '../deep-frozen.ts'
import { canonicalText } from '../json-value.ts'
import { isPlainObject, membersOf } from '../strict-members.ts'
import { checkIdentifier, grantsOf } from './names.ts'

/** Where tools run. Made by {@link brainEnv}, {@link hostEnv} and factories of `environment()`; frozen. */
export type Environment = BrainEnv | HostEnv | HttpEnv

/** An environment of the server itself, for components. */
export type BrainEnv = {
  readonly driver: 'brain'
  readonly name: string
  readonly configuration: BrainEnvConfiguration
  readonly environments?: readonly EnvironmentGrant[]
}

/** An environment of the application: its tools run in the process that creates the session. */
export type HostEnv = {
  readonly driver: 'host'
  readonly name: string
  readonly configuration?: JsonObject
  readonly environments?: readonly EnvironmentGrant[]
}

/** An environment that something else runs, which Brain asks over HTTP. */
export type HttpEnv = {
  readonly driver: 'http'
  readonly name: string
  readonly url: string
  /** What Brain shows at `url`. Can be read, and is left out where the environment is printed, copied or serialized. */
  readonly credential?: string
  readonly configuration?: Json
  readonly methods?: EnvironmentMethods
  readonly template?: EnvironmentTemplate
  readonly environments?: readonly EnvironmentGrant[]
}

/** What {@link brainEnv} takes (contract 6.1): `name`, access, and grants over other environments. */
export type BrainEnvOptions = BrainEnvConfiguration & {
  readonly name: string
  readonly environments?: readonly EnvironmentGrant[]
}

/** What {@link hostEnv} takes: `name`, and grants over other environments. */
export type HostEnvOptions = { readonly name: string; readonly environments?: readonly EnvironmentGrant[] }

const SECRET_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/
/** Two copies of the package know each other's environments by it. */
const BRAND = Symbol.for('@aexhq/brain/environment')

/**
 * An environment that the server runs components in, with the access they ask for. What the operator's allow list does
 * not cover is refused when the session is created. Tools in one environment share its workspace and its grants.
 *
 * @param options `name`; `secrets`: names of secrets; `network`: origins such as `https://api.example` or
 * `https://*.example`; `filesystem`: `workspace` and `scratch`, each `'read'` or `'write'`. What is left out is not granted.
 * @throws TypeError for a wrong or unknown member
 */
export function brainEnv(options: BrainEnvOptions): BrainEnv {
  const what = 'Cannot declare a brainEnv'
  const members = membersOf(options, ['name', 'secrets', 'network', 'filesystem', 'environments'], what)
  const { name, secrets, network, filesystem } = members
  checkIdentifier(name, `${what}: name`)
  if (secrets !== undefined)
    checkTexts(secrets, `${what}: secrets`, 'the name of a variable', (text) => SECRET_NAME.test(text))
  if (network !== undefined)
    checkTexts(
      network,
      `${what}: network`,
      'an origin such as https://api.example',
      (text) => parseOrigin(text) !== undefined,
    )
  if (filesystem !== undefined) checkFilesystem(filesystem, `${what}: filesystem`)
  const configuration = Object.fromEntries(
    Object.entries({ secrets, network, filesystem }).filter(([, value]) => value !== undefined),
  ) as BrainEnvConfiguration
  return branded({ driver: 'brain', name, configuration, ...grantsOf(options.environments, what) })
}

/**
 * A named environment of the application itself: functions placed in it run in the process that creates the session, with
 * that process's working directory, permissions and credentials. Tools that name no environment get one without asking.
 *
 * @throws TypeError for a wrong or unknown member
 */
export function hostEnv(options: HostEnvOptions): HostEnv {
  const what = 'Cannot declare a hostEnv'
  const { name } = membersOf(options, ['name', 'environments'], what)
  checkIdentifier(name, `${what}: name`)
  return branded({ driver: 'host', name, ...grantsOf(options.environments, what) })
}

/**
 * As {@link hostEnv}, for tools that are functions of a page.
 *
 * @throws TypeError for a wrong or unknown member
 */
export const clientBrowser = (options: HostEnvOptions): HostEnv => hostEnv(options)

/** The environment of tools that name none. */
export const defaultHost = (name: string): HostEnv =>
  branded({ driver: 'host', name, configuration: { sdk_default: true } })

export const isEnvironment = (value: unknown): value is Environment =>
  typeof value === 'object' && value !== null && BRAND in value

export const isSameEnvironment = (left: Environment, right: Environment): boolean =>
  left === right ||
  (canonicalText(left as never) === canonicalText(right as never) && credentialOf(left) === credentialOf(right))

const credentialOf = (environment: Environment): string | undefined =>
  environment.driver === 'http' ? environment.credential : undefined

/** @param credential what stays out of print */
export function httpEnv(environment: Omit<HttpEnv, 'credential'>, credential: string | undefined): HttpEnv {
  const hidden = credential === undefined ? {} : { credential: { value: credential } }
  const copy: HttpEnv = { ...deepFrozen(environment) }
  return Object.freeze(Object.defineProperties(copy, { ...hidden, [BRAND]: { value: true } }))
}

function branded<Made extends Environment>(environment: Made): Made {
  const copy = { ...deepFrozen(environment) }
  return Object.freeze(Object.defineProperty(copy, BRAND, { value: true }))
}

function checkTexts(value: unknown, what: string, rule: string, isRight: (text: string) => boolean): void {
  if (!Array.isArray(value)) throw new TypeError(`${what}: it must be a list`)
  const wrong: unknown = value.find((entry) => typeof entry !== 'string' || !isRight(entry))
  if (wrong !== undefined) throw new TypeError(`${what}: ${clip(JSON.stringify(wrong), 100)} is not ${rule}`)
}

function checkFilesystem(value: unknown, what: string): void {
  if (!isPlainObject(value)) throw new TypeError(`${what}: it must be an object with workspace and scratch`)
  for (const [member, access] of Object.entries(membersOf(value, ['workspace', 'scratch'], what)))
    if (access !== undefined && access !== 'read' && access !== 'write')
      throw new TypeError(`${what}: ${member} must be "read" or "write"`)
}
