import type { JsonObject } from '../kernel/json.ts'
import { type Config, loadConfig } from '../config/config.ts'
import { readHostConfig } from '../config/host-config.ts'
import { openSchemaChecker } from '../dispatch/schemas/open-schema-checker.ts'

/**
 * The whole configuration: variables, and the host config if there is one (contract A1).
 *
 * @param hostConfig path of the host config
 * @throws ConfigError with every problem of both
 */
export async function readConfig(
  env: Readonly<Record<string, string | undefined>>,
  hostConfig: string | undefined,
): Promise<Config> {
  if (hostConfig === undefined) return loadConfig(env)
  await using schemas = openSchemaChecker()
  const faultOf = async (schema: JsonObject): Promise<string | undefined> => {
    const verdict = await schemas.checkSchema(schema)
    return verdict.valid ? undefined : verdict.message
  }
  return loadConfig(env, await readHostConfig(hostConfig, env, faultOf))
}
