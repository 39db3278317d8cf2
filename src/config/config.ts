import { isIP } from 'node:net'
import { z } from 'zod'
import type { Limits } from '../contract/limits.ts'
import { BEARER_TOKEN } from '../kernel/bearer-token.ts'
import { messageOf } from '../kernel/errors.ts'
import { localTenant, type TenantId } from '../kernel/ids.ts'
import { parseProxyRules, type ProxyRules } from '../kernel/net/proxy-rules.ts'
import type { ToolService } from '../contract/tool-service.ts'
import type { HostConfigFile, ReadHostConfig } from './host-config.ts'
import type { ProviderDefinition } from '../contract/model-catalogue.ts'
import { type NetworkOrigin, parseOrigin } from '../contract/network-origin.ts'
import { readLimits } from './read-limits.ts'
import { baseUrl, ownProviders, readProvidersFile } from './providers.ts'
import { unusedVariables } from './unused-variables.ts'

/** What environments of a tenant may be granted (contract 6.1, A3, A26). */
export type Allowance = {
  readonly secrets: readonly string[]
  readonly filesystem: readonly ('workspace' | 'scratch')[]
  readonly network: readonly NetworkOrigin[]
  /** Origins of environments elsewhere; undefined = the default. */
  readonly environmentUrls: readonly NetworkOrigin[] | undefined
}

export type TenantConfig = {
  readonly id: TenantId
  /** Bearer tokens of the tenant; several while one is replaced. */
  readonly tokens: readonly string[]
  readonly allow: Allowance
}

/** What the server is told to be. Rooms get their own slice of it. */
export type Config = {
  readonly listen: { readonly host: string; readonly port: number }
  readonly dataDirectory: string
  /** At least one; the only one may be without a token, on loopback. */
  readonly tenants: readonly TenantConfig[]
  /** What is set and has no effect. */
  readonly warnings: readonly string[]
  /** Distributed tools by name, and the variables that their tokens are in. */
  readonly toolServices: ReadonlyMap<string, ToolService>
  readonly toolTokens: ReadonlyMap<string, string>
  /** Proxies for calls of distributed tools. */
  readonly proxies: ProxyRules
  readonly publicUrl: URL | undefined
  readonly corsOrigins: readonly string[]
  /** Values of the allowed secrets that the environment has. */
  readonly secrets: ReadonlyMap<string, string>
  readonly secretKey: string | undefined
  readonly sessionIdleTtlMs: number | undefined
  /** Providers of models that are reached over HTTP: the server's own, then those of the operator. */
  readonly providers: readonly ProviderDefinition[]
  readonly scriptedModel: { readonly file: string | undefined } | undefined
  /** Run components with Node's flags alone where the machine offers no level (design 5). */
  readonly isUnsafeAllowed: boolean
  /** Whether a box serves a tool's calls one after another, or one call only (design 2). */
  readonly isolation: 'tool' | 'invocation'
  /** Of a command that has no server: directories of its user that are workspaces, by the names of environments. */
  readonly workspaceDirectories: Readonly<Record<string, string>>
  readonly logLevel: string
  /** PATH: where programs are looked for. */
  readonly searchPath: string | undefined
  readonly limits: Limits
}

/** What a host config says, which may be read again while the server runs (contract A4, A16). */
export type HostSettings = Pick<Config, 'tenants' | 'toolServices' | 'toolTokens' | 'secrets'>

/** Thrown with every problem of the configuration at once. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(`Cannot start with this configuration:\n${problems.map((problem) => `  ${problem}`).join('\n')}`)
    this.problems = problems
  }
}

const flag = z.enum(['0', '1'], 'must be 0 or 1').default('0')
const list = z
  .string()
  .default('')
  .transform((text) =>
    text
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== ''),
  )

const listen = z
  .string()
  .default('127.0.0.1:8080')
  .transform((text, context) => {
    const url = `http://${text}`
    const match = /^(.*):(\d{1,5})$/.exec(text)
    const port = Number(match?.[2])
    if (match?.[1] === undefined || !URL.canParse(url) || port > 65_535) {
      context.addIssue({ code: 'custom', message: 'must be HOST:PORT, for example 127.0.0.1:8080 or [::1]:8080' })
      return z.NEVER
    }
    return { host: match[1].replace(/^\[|\]$/g, ''), port }
  })

const publicUrl = z
  .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
  .transform((text) => new URL(text))
  .refine((url) => url.username === '' && url.search === '' && url.hash === '', 'must hold no user, query or fragment')

const origin = z
  .string()
  .refine(
    (text) => URL.canParse(text) && new URL(text).origin === text,
    'must be an origin such as https://app.example',
  )

const networkOrigin = z.string().transform((text, context) => {
  const read = parseOrigin(text)
  if (read !== undefined) return read
  const message = `must list origins such as https://api.example or https://*.example:8443, not ${JSON.stringify(text.slice(0, 80))}`
  context.addIssue({ code: 'custom', message })
  return z.NEVER
})

const environmentSchema = z.object({
  BRAIN_LISTEN: listen,
  BRAIN_DATA_DIR: z.string().min(1, 'must not be empty').default('brain-data'),
  BRAIN_API_TOKEN: z
    .string()
    .min(1, 'must not be empty: leave it unset for no token')
    .refine((text) => text === '' || BEARER_TOKEN.test(text), 'holds characters that no header may have')
    .optional(),
  BRAIN_PUBLIC_URL: publicUrl.optional(),
  BRAIN_CORS_ORIGINS: list.pipe(z.array(origin)),
  BRAIN_ENV_SECRET_ALLOW: list,
  BRAIN_ENV_FILESYSTEM_ALLOW: list.pipe(z.array(z.enum(['workspace', 'scratch'], 'may list workspace and scratch'))),
  BRAIN_ENV_NETWORK_ALLOW: list.pipe(z.array(networkOrigin)),
  BRAIN_ENVIRONMENT_URL_ALLOW: list.pipe(z.array(networkOrigin)).optional(),
  BRAIN_ENV_UNSAFE: flag,
  BRAIN_ENV_ISOLATION: z.enum(['tool', 'invocation'], 'must be tool or invocation').default('tool'),
  BRAIN_SECRET_KEY: z.string().min(16, 'must be at least 16 characters').optional(),
  BRAIN_SESSION_IDLE_TTL_SECS: z.coerce.number('must be a number').int().nonnegative().optional(),
  BRAIN_MODEL_BASE_URL: baseUrl.optional(),
  BRAIN_OPENAI_BASE_URL: baseUrl.optional(),
  BRAIN_ANTHROPIC_BASE_URL: baseUrl.optional(),
  BRAIN_PROVIDERS_FILE: z.string().min(1, 'must not be empty').optional(),
  BRAIN_SCRIPTED_MODEL: flag,
  BRAIN_SCRIPTED_MODEL_FILE: z.string().min(1).optional(),
  BRAIN_LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info'),
  BRAIN_DATABASE_URL: z
    .undefined(
      'is set, but this version keeps its journal in SQLite under BRAIN_DATA_DIR only; PostgreSQL comes later: unset it',
    )
    .optional(),
})

/** Whether a server that listens there is reached from its own machine only. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))

/**
 * Reads the whole configuration from environment variables (contract 8); nothing below `main` reads them.
 * @throws ConfigError listing every problem
 */
export function loadConfig(
  env: Readonly<Record<string, string | undefined>>,
  host: ReadHostConfig = { file: undefined, problems: [] },
): Config {
  const problems: string[] = [...host.problems]
  const limits = readLimits(env, problems)
  const operators = readOperatorsProviders(env['BRAIN_PROVIDERS_FILE'], problems)
  const proxies = readProxies(env, problems)
  const parsed = environmentSchema.safeParse(env)
  if (!parsed.success) problems.push(...parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`))
  else if (!hasToken(parsed.data, host) && !isLoopback(parsed.data.BRAIN_LISTEN.host))
    problems.push(
      `BRAIN_LISTEN: ${parsed.data.BRAIN_LISTEN.host} is not loopback, so BRAIN_API_TOKEN must be set, or tenants listed in the host config`,
    )
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems)
  return toConfig(parsed.data, env, { limits, operators, proxies, file: host.file })
}

const hasToken = (data: z.output<typeof environmentSchema>, { file }: ReadHostConfig): boolean =>
  data.BRAIN_API_TOKEN !== undefined || file?.tenants !== undefined

function readOperatorsProviders(file: string | undefined, problems: string[]): readonly ProviderDefinition[] {
  if (file === undefined || file === '') return []
  const read = readProvidersFile(file)
  if ('providers' in read) return read.providers
  problems.push(`BRAIN_PROVIDERS_FILE: ${read.problem}`)
  return []
}

/** The variables that programs share, in either case; where both are there, the small one counts (contract A16). */
function readProxies(env: Readonly<Record<string, string | undefined>>, problems: string[]): ProxyRules {
  const textOf = (name: string): string | undefined => env[name] ?? env[name.toUpperCase()]
  try {
    return parseProxyRules({ http: textOf('http_proxy'), https: textOf('https_proxy'), except: textOf('no_proxy') })
  } catch (error) {
    problems.push(messageOf(error))
    return parseProxyRules({})
  }
}

/** The tenants of the host config, or the one of BRAIN_API_TOKEN (contract A3). */
function tenantsOf(
  data: z.output<typeof environmentSchema>,
  env: Readonly<Record<string, string | undefined>>,
  file: HostConfigFile | undefined,
): readonly TenantConfig[] {
  const listed = file?.tenants
  if (listed === undefined) {
    const allow: Allowance = {
      secrets: data.BRAIN_ENV_SECRET_ALLOW,
      filesystem: data.BRAIN_ENV_FILESYSTEM_ALLOW,
      network: data.BRAIN_ENV_NETWORK_ALLOW,
      environmentUrls: env['BRAIN_ENVIRONMENT_URL_ALLOW'] === undefined ? undefined : data.BRAIN_ENVIRONMENT_URL_ALLOW,
    }
    const { BRAIN_API_TOKEN: token } = data
    return [{ id: localTenant, tokens: token === undefined ? [] : [token], allow }]
  }
  const origins = (texts: readonly string[] | undefined): readonly NetworkOrigin[] =>
    (texts ?? []).flatMap((text) => parseOrigin(text) ?? [])
  return listed.map(({ id, token_env: names, allow = {} }) => ({
    id: id as TenantId,
    tokens: [names].flat().flatMap((name) => env[name] ?? []),
    allow: {
      secrets: allow.secrets ?? [],
      filesystem: allow.filesystem ?? [],
      network: origins(allow.network),
      environmentUrls: origins(allow.environment_urls),
    },
  }))
}

type ReadBeside = {
  readonly limits: Limits
  readonly operators: readonly ProviderDefinition[]
  readonly proxies: ProxyRules
  readonly file: HostConfigFile | undefined
}

function toConfig(
  data: z.output<typeof environmentSchema>,
  env: Readonly<Record<string, string | undefined>>,
  { limits, operators, proxies, file }: ReadBeside,
): Config {
  const tenants = tenantsOf(data, env, file)
  const valuesOf = (names: readonly string[]): Map<string, string> =>
    new Map(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))
  const tools = file?.tools ?? []
  const ttlSecs = data.BRAIN_SESSION_IDLE_TTL_SECS
  return {
    listen: data.BRAIN_LISTEN,
    dataDirectory: data.BRAIN_DATA_DIR,
    tenants,
    warnings: file?.tenants === undefined ? [] : unusedVariables(env, tenants),
    toolServices: new Map(tools.map((tool) => [tool.name, tool as ToolService])),
    toolTokens: valuesOf(tools.flatMap(({ token_env: name }) => name ?? [])),
    proxies,
    publicUrl: data.BRAIN_PUBLIC_URL,
    corsOrigins: data.BRAIN_CORS_ORIGINS,
    secrets: valuesOf(tenants.flatMap(({ allow }) => allow.secrets)),
    secretKey: data.BRAIN_SECRET_KEY,
    sessionIdleTtlMs: ttlSecs === undefined ? undefined : ttlSecs * 1000,
    providers: [
      ...ownProviders({
        gateway: data.BRAIN_MODEL_BASE_URL,
        openai: data.BRAIN_OPENAI_BASE_URL,
        anthropic: data.BRAIN_ANTHROPIC_BASE_URL,
      }),
      ...operators,
    ],
    scriptedModel: data.BRAIN_SCRIPTED_MODEL === '1' ? { file: data.BRAIN_SCRIPTED_MODEL_FILE } : undefined,
    isUnsafeAllowed: data.BRAIN_ENV_UNSAFE === '1',
    isolation: data.BRAIN_ENV_ISOLATION,
    workspaceDirectories: {},
    logLevel: data.BRAIN_LOG_LEVEL,
    searchPath: env['PATH'],
    limits,
  }
}
