import type { TenantConfig } from './config.ts'

/** What they allow is allowed to the tenant of BRAIN_API_TOKEN, which is there where no tenants are listed (contract A3). */
const ALLOWANCES = [
  'BRAIN_ENV_SECRET_ALLOW',
  'BRAIN_ENV_FILESYSTEM_ALLOW',
  'BRAIN_ENV_NETWORK_ALLOW',
  'BRAIN_ENVIRONMENT_URL_ALLOW',
]

/** Says which variables have no effect, since a host config lists tenants: nobody gets more by that, so it is no error. */
export function unusedVariables(
  env: Readonly<Record<string, string | undefined>>,
  tenants: readonly TenantConfig[],
): readonly string[] {
  const { BRAIN_API_TOKEN: token } = env
  const opens = token === undefined || tenants.some(({ tokens }) => tokens.includes(token))
  const because = 'has no effect, since the host config lists tenants'
  return [
    ...(opens ? [] : [`BRAIN_API_TOKEN: ${because}: name it in token_env of one, or unset it`]),
    ...ALLOWANCES.filter((name) => env[name] !== undefined).map(
      (name) => `${name}: ${because}: write it into "allow" of each, or unset it`,
    ),
  ]
}
