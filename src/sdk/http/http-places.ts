import { z } from 'zod'
import type { Json, JsonObject } from '../../kernel/json.ts'
import type { EnvironmentGrant } from '../../contract/session-request.ts'
import { deepFrozen } from '../deep-frozen.ts'
import { environment, type TemplateDeclaration } from '../declare/environment.ts'
import { environmentUrlOf } from '../declare/environment-url.ts'
import { isEnvironment, type HttpEnv } from '../declare/environments.ts'
import { checkIdentifier } from '../declare/names.ts'
import { isPlacedTool, placed, type PlacedTool } from '../declare/tool.ts'
import { jsonOf } from '../json-value.ts'
import { membersOf } from '../strict-members.ts'
import { httpDefinitionOf, LONGEST_CALL_MS, USUAL_CALL_MS } from './tool-call.ts'

/** What both kinds of environment are given beside what names the application. */
type Common = {
  readonly name: string
  /** Of the bridge. */
  readonly url: string | URL
  readonly environments?: readonly EnvironmentGrant[]
  readonly template?: TemplateDeclaration
}

/** What {@link http} takes. */
export type HttpOptions = Common & {
  /** What Brain shows to the bridge. */
  readonly token?: string
  /** The name under which the operator of the bridge has approved an application. */
  readonly binding: string
}

/** What {@link application} takes. */
export type ApplicationOptions = Common & {
  /** What Brain shows to the bridge. */
  readonly credential?: string
  /** Where the application takes calls. */
  readonly endpoint: string | URL
  /** Milliseconds that a call may take, at most 300000; 30000 when absent. */
  readonly timeoutMs?: number
}

const INSPECT = {
  inspect: {
    description: 'The names of the tools that may be called here, and how many milliseconds a call may take.',
    input: z.strictObject({}),
    output: z.object({ tools: z.array(z.string()), timeoutMs: z.number() }),
  },
}

/**
 * An environment whose tools are functions of an application behind a bridge that knows it by a name. They give plain JSON:
 * place them with {@link httpTool}.
 *
 * @throws TypeError for members that cannot be used
 */
export function http(options: HttpOptions): HttpEnv {
  const what = 'Cannot declare an http environment'
  membersOf(options, ['name', 'url', 'token', 'binding', 'environments', 'template'], what)
  const { url, token, binding, ...place } = options
  checkIdentifier(binding, `${what}: binding`)
  return environment({
    url,
    ...(token !== undefined && { credential: token }),
    methods: INSPECT,
    configure: () => ({ binding }),
  })(place)
}

/**
 * An environment whose tools are ordinary functions of an application, called by a bridge at `endpoint`: with options, and
 * with `ctx.finish`. Place them with {@link applicationTool}.
 *
 * @throws TypeError for members that cannot be used
 */
export function application(options: ApplicationOptions): HttpEnv {
  const what = 'Cannot declare an application'
  membersOf(options, ['name', 'url', 'credential', 'endpoint', 'timeoutMs', 'environments', 'template'], what)
  const { url, credential, endpoint, timeoutMs = USUAL_CALL_MS, ...place } = options
  environmentUrlOf(endpoint, `${what}: endpoint`)
  if (!Number.isSafeInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > LONGEST_CALL_MS)
    throw new TypeError(`${what}: timeoutMs must be a whole number from 1 to ${LONGEST_CALL_MS}`)
  const configuration = { type: 'application', endpoint: new URL(endpoint).href, timeoutMs }
  return environment({
    url,
    ...(credential !== undefined && { credential }),
    methods: INSPECT,
    configure: () => configuration,
  })(place)
}

/**
 * Places a function of the application in an environment of {@link http}. What it returns is its result, whatever it looks
 * like; it has no options, and asks nothing of Brain.
 *
 * @param tool what a factory of `tool()` gave, without options
 * @throws TypeError for anything else
 */
export function httpTool(tool: PlacedTool, place: { readonly env: HttpEnv }): PlacedTool {
  return placeOver(tool, place, (definition, options) => {
    if (Object.keys(options as object).length > 0)
      throw new TypeError(`Cannot place tool "${tool.name}": it has options: use application() and applicationTool()`)
    return { type: 'http_tool', definition, configuration: {} }
  })
}

/**
 * Places a function of the application in an environment of {@link application}, with its options.
 *
 * @param tool what a factory of `tool()` gave
 * @throws TypeError for anything else, and for options that are not JSON
 */
export function applicationTool(tool: PlacedTool, place: { readonly env: HttpEnv }): PlacedTool {
  return placeOver(tool, place, (definition, options) => ({ type: 'application_tool', definition, options }))
}

function placeOver(
  tool: PlacedTool,
  place: { readonly env: HttpEnv },
  descriptorOf: (definition: Json, options: Json) => JsonObject,
): PlacedTool {
  if (!isPlacedTool(tool) || tool.executable.type !== 'function')
    throw new TypeError('Cannot place a tool over HTTP: give a placed function, as in httpTool(lookup(), { env })')
  const { name, definition, executable, environments } = tool
  const what = `Cannot place tool "${name}"`
  const { env } = membersOf(place, ['env'], what)
  if (!isEnvironment(env) || env.driver !== 'http')
    throw new TypeError(`${what}: env must be made by http() or application()`)
  if (environments !== undefined)
    throw new TypeError(`${what}: over HTTP it controls no environments: leave its grants out`)
  const descriptor = deepFrozen(
    descriptorOf(jsonOf(httpDefinitionOf(definition), 'definition'), jsonOf(executable.options, `${what}: options`)),
  )
  const run = Object.freeze({ type: 'descriptor', descriptor, configuration: {} } as const)
  return placed({ name, definition, env, executable: run })
}
