import { resolve } from 'node:path'
import { statSync } from 'node:fs'
import { BrainError } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { Environment } from '../environment.ts'
import { jsonArgument } from './json-argument.ts'
import type { ToolSetting } from './tool-setting.ts'

/** Flags of every command that runs a tool, as commander reads them. */
export type GrantFlags = {
  readonly workspace?: string
  readonly scratch?: boolean
  readonly secret?: readonly string[]
  readonly net?: readonly string[]
  readonly options?: string
  readonly model?: string
  readonly apiKeyEnv?: string
}

/** @throws BrainError `invalid_request` naming the flag that cannot be used */
export async function readGrants(env: Environment, flags: GrantFlags): Promise<ToolSetting> {
  return {
    ...(flags.workspace === undefined ? {} : { workspace: workspaceOf(flags.workspace) }),
    scratch: flags.scratch === true,
    secrets: flags.secret ?? [],
    network: flags.net ?? [],
    options: flags.options === undefined ? {} : await jsonArgument(flags.options, '--options'),
    model: await modelOf(env, flags),
  }
}

/** `DIR` or `DIR:ro`. A directory whose name ends so is written with a slash at its end. */
function workspaceOf(text: string): NonNullable<ToolSetting['workspace']> {
  const write = !text.endsWith(':ro')
  const directory = resolve(write ? text.replace(/:rw$/, '') : text.slice(0, -':ro'.length))
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() === true) return { directory, write }
  throw new BrainError(
    'invalid_request',
    `Cannot use --workspace ${JSON.stringify(directory)}: there is no such directory`,
  )
}

const NO_MODEL: JsonObject = {
  provider: 'scripted',
  name: 'none',
  api_key: 'none',
  script: [{ error: { code: 'model_unavailable', message: 'Cannot call a model: give the command one with --model' } }],
}

/** `scripted:JSON`, `scripted:@FILE`, or `PROVIDER:NAME` with its key in a variable. */
async function modelOf(env: Environment, { model, apiKeyEnv }: GrantFlags): Promise<JsonObject> {
  if (model === undefined) return NO_MODEL
  const colon = model.indexOf(':')
  const [provider, rest] = [model.slice(0, Math.max(0, colon)), model.slice(colon + 1)]
  if (provider === '' || rest === '')
    throw new BrainError(
      'invalid_request',
      `Cannot use --model ${JSON.stringify(model.slice(0, 80))}: write scripted:@FILE or PROVIDER:NAME`,
    )
  if (provider === 'scripted')
    return { provider, name: 'script', api_key: 'none', script: await jsonArgument(rest, '--model scripted:') }
  const key = apiKeyEnv === undefined ? undefined : env[apiKeyEnv]
  if (key === undefined || key === '')
    throw new BrainError(
      'invalid_request',
      `Cannot use --model ${model}: name the variable that holds the key of ${provider} with --api-key-env`,
    )
  return { provider, name: rest, api_key: key }
}
