import { BrainError } from '../../kernel/errors.ts'
import type { Json, JsonObject } from '../../kernel/json.ts'
import type { LocalConfig } from '../../compose/local-brain.ts'
import type { Config } from '../../config/config.ts'
import { readLimits } from '../../config/read-limits.ts'
import { parseOrigin } from '../../contract/network-origin.ts'
import type { ComponentId } from '../../kernel/ids.ts'
import type { Component } from '../../sandbox/sandbox.ts'
import type { Environment } from '../environment.ts'

/** The environment in which a command places the tool. */
export const BOX = 'box'

/** What a tool is given by whoever runs it on a command line. */
export type ToolSetting = {
  /** A directory of the user as `/workspace`. */
  readonly workspace?: { readonly directory: string; readonly write: boolean }
  /** A workspace that the session has for itself. Default: none. */
  readonly ownWorkspace?: boolean
  /** A directory of its own as `/scratch`. */
  readonly scratch: boolean
  /** Names of variables whose values are files under `/secrets`. */
  readonly secrets: readonly string[]
  readonly network: readonly string[]
  /** The options with which the tool is placed. */
  readonly options: Json
  readonly model: JsonObject
  /** Whether what runs is another component every time, and the box of the one before is of no use. Default: no. */
  readonly changes?: boolean
}

/**
 * What a Brain needs that lets tools have what the setting names, and nothing else.
 * @throws BrainError `invalid_request` for a secret without a variable, or an origin that is none; ConfigError
 */
export async function localConfig(
  env: Environment,
  setting: Omit<ToolSetting, 'options' | 'model'>,
): Promise<LocalConfig> {
  const { workspace, secrets, network, changes = false } = setting
  for (const name of secrets)
    if (env[name] === undefined)
      throw new BrainError(
        'invalid_request',
        `Cannot grant secret "${name}": set the variable ${name} for this command`,
      )
  for (const origin of network)
    if (parseOrigin(origin) === undefined)
      throw new BrainError(
        'invalid_request',
        `Cannot grant network access to ${JSON.stringify(origin.slice(0, 200))}: write an origin such as https://api.example or https://*.example:8443`,
      )
  const isolation = changes ? 'invocation' : 'tool'
  const variables = {
    ...serversOwn(env),
    ...Object.fromEntries(secrets.map((name) => [name, env[name]])),
    PATH: env['PATH'],
    BRAIN_ENV_UNSAFE: env['BRAIN_ENV_UNSAFE'],
    BRAIN_ENV_SECRET_ALLOW: secrets.join(','),
    BRAIN_ENV_NETWORK_ALLOW: network.join(','),
    BRAIN_ENV_FILESYSTEM_ALLOW: 'workspace,scratch',
    BRAIN_SCRIPTED_MODEL: '1',
    // One box, made before it is needed, and replaced where the next call needs another one.
    BRAIN_ENV_WORKERS: '1',
    BRAIN_MAX_BOXES: changes ? '2' : '1',
    BRAIN_ENV_ISOLATION: isolation,
  }
  const workspaceDirectories: Record<string, string> = workspace === undefined ? {} : { [BOX]: workspace.directory }
  const load = async (): Promise<Config> => {
    const { loadConfig } = await import('../../config/config.ts')
    return { ...loadConfig(variables), workspaceDirectories }
  }
  const problems: string[] = []
  const limits = readLimits(variables, problems)
  if (problems.length > 0) await load()
  const isUnsafeAllowed = variables.BRAIN_ENV_UNSAFE === '1'
  return { limits, isolation, isUnsafeAllowed, searchPath: env['PATH'], workspaceDirectories, load }
}

/** Limits and providers of models are the ones that a server would have in the same shell. */
const serversOwn = (env: Environment): Environment =>
  Object.fromEntries(
    Object.entries(env).filter(([name]) => /^BRAIN_(?:MAX|MODEL|OPENAI|ANTHROPIC|PROVIDERS)_/.test(name)),
  )

/** The name of the tool that a command runs: its own word, or `tool`. */
export const nameOf = ({ metadata }: Component): string => metadata?.name ?? 'tool'

const UNDESCRIBED = { description: 'A tool that says nothing about itself', input_schema: { type: 'object' } }

/** Body of the create request for a session with this one tool (contract 2.1). */
export function sessionWith(component: Component, { options, model, ...setting }: ToolSetting): JsonObject {
  const { workspace, ownWorkspace = false, scratch, secrets, network } = setting
  const filesystem = {
    ...(workspace === undefined && !ownWorkspace ? {} : { workspace: workspace?.write === false ? 'read' : 'write' }),
    ...(scratch ? { scratch: 'write' } : {}),
  }
  return {
    model,
    tools: [
      {
        name: nameOf(component),
        ...(component.metadata === undefined ? UNDESCRIBED : {}),
        placements: { [BOX]: { implementation: implementationOf(component.id, options) } },
      },
    ],
    environments: [
      {
        name: BOX,
        driver: 'brain',
        lifecycle: 'automatic',
        configuration: { filesystem, secrets: [...secrets], network: [...network] },
      },
    ],
  }
}

const implementationOf = (id: ComponentId, configuration: Json): JsonObject => ({
  type: 'brain_component',
  entrypoint: 'run',
  id,
  configuration,
})
