import { isUtf8 } from 'node:buffer'
import { readFileSync, statSync } from 'node:fs'
import { z } from 'zod'
import { BEARER_TOKEN } from '../kernel/bearer-token.ts'
import { messageOf } from '../kernel/errors.ts'
import { isIdentifier } from '../kernel/ids.ts'
import { isJsonObject, type Json, type JsonObject, parseJson } from '../kernel/json.ts'
import { parseOrigin } from '../contract/network-origin.ts'
import { jsonObjectSchema } from '../contract/message-schema.ts'
import { jsonFaults } from './json-faults.ts'
import { lineAt, lineOf } from './json-place.ts'

const MAX_FILE_BYTES = 16 * 1024 * 1024
const MIB = 1024 * 1024

const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be the name of a variable')
const identifier = z
  .string()
  .refine(isIdentifier, 'must be an identifier: letters, digits and . _ : - (at most 128)')
  .meta({ pattern: '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$' })
const origin = z
  .string()
  .refine(
    (text) => parseOrigin(text) !== undefined,
    'must be an origin such as https://api.example or https://*.example:8443',
  )

/** Where a service is. The operator names it, so it may be anywhere; its token has a place of its own. */
const url = z
  .string()
  .max(2048)
  .refine((text) => /^https?:\/\/[^\s\\]+$/i.test(text) && URL.canParse(text), 'must be an http or https URL')
  .refine((text) => !text.includes('#'), 'must hold no fragment, which would not be sent')
  .refine(
    (text) => !URL.canParse(text) || (new URL(text).username === '' && new URL(text).password === ''),
    'must hold no user or password: give token_env',
  )

export const tenantSchema = z.strictObject({
  id: identifier.meta({ description: 'Name of the tenant; whatever it makes belongs to it' }),
  token_env: z
    .union([variable, z.array(variable).min(1).max(16)])
    .meta({ description: 'Variable with its token; list two while a token is replaced' }),
  allow: z
    .strictObject({
      secrets: z.array(variable).max(1024).optional(),
      network: z.array(origin).max(1024).optional(),
      filesystem: z.array(z.enum(['workspace', 'scratch'])).optional(),
      environment_urls: z.array(origin).max(1024).optional(),
    })
    .meta({ description: 'What its environments may be granted; what is left out is nothing' })
    .optional(),
})

export const toolBindingSchema = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, _ and -'),
  description: z.string().min(1, 'must not be empty').max(8192),
  input_schema: jsonObjectSchema.meta({ description: 'JSON Schema of the arguments' }),
  output_schema: jsonObjectSchema.meta({ description: 'JSON Schema of structured_content, on success' }).optional(),
  url: url.meta({ description: 'Where calls are sent with POST; no answer, record or log has it' }),
  token_env: variable.meta({ description: 'Variable with the bearer token of the service' }).optional(),
  tenants: z.array(identifier).max(1024).meta({ description: 'Whose tool it is; default: of all' }).optional(),
  timeout_seconds: z.int().min(1).max(86_400).default(300),
  max_output_bytes: z
    .int()
    .min(1)
    .max(32 * MIB)
    .default(MIB),
  inspect_session: z
    .boolean()
    .meta({ description: 'Whether a call may read the events of its session' })
    .default(false),
})

/** The host config (contract A1, A3, A16): what an operator gives beside variables. */
export const hostConfigSchema = z.strictObject({
  $schema: z.string().optional(),
  tenants: z.array(tenantSchema).min(1).max(1024).optional(),
  tools: z.array(toolBindingSchema).max(1024).optional(),
})

export type HostConfigFile = z.output<typeof hostConfigSchema>

/** What a host config says, or everything that is wrong with it; each problem names its place in the file. */
export type ReadHostConfig = { readonly file: HostConfigFile | undefined; readonly problems: readonly string[] }

/** Says what makes a JSON Schema unusable, if anything does. */
export type FaultOfSchema = (schema: JsonObject) => Promise<string | undefined>

/**
 * Reads a host config. Tokens are looked for in `env`; schemas are judged by `faultOf`.
 * @returns never rejects: what cannot be read is a problem
 */
export async function readHostConfig(
  path: string,
  env: Readonly<Record<string, string | undefined>>,
  faultOf: FaultOfSchema,
): Promise<ReadHostConfig> {
  let text: string
  try {
    text = readText(path)
  } catch (error) {
    return { file: undefined, problems: [`${path}: ${messageOf(error)}`] }
  }
  const faults = jsonFaults(text)
  if (faults.length > 0) {
    const told = faults.map(
      ({ at, place, reason }) =>
        () =>
          `${path}:${lineAt(text, at)}: ${nameOf(place)}${reason}`,
    )
    return { file: undefined, problems: firstOf(told) }
  }
  const value = parseJson(text, path)
  const parsed = hostConfigSchema.safeParse(value)
  const found: Problem[] = parsed.success ? [] : parsed.error.issues.flatMap(problemsOfIssue)
  found.push(...(await schemaProblems(value, faultOf)))
  if (parsed.success) found.push(...referenceProblems(parsed.data, env))
  const problems = firstOf(
    found.map(
      ({ place, message }) =>
        () =>
          `${path}:${lineOf(text, place)}: ${nameOf(place)}${message}`,
    ),
  )
  return { file: parsed.success && problems.length === 0 ? parsed.data : undefined, problems }
}

/** To find a line takes as long as the file is; who has more to mend than this begins somewhere. */
const MOST_PROBLEMS = 100

function firstOf(problems: readonly (() => string)[]): readonly string[] {
  const told = problems.slice(0, MOST_PROBLEMS).map((problem) => problem())
  return problems.length > MOST_PROBLEMS ? [...told, `… and ${problems.length - MOST_PROBLEMS} more`] : told
}

/** @throws Error saying why the file cannot be read as text */
function readText(path: string): string {
  const { size } = statSync(path)
  if (size > MAX_FILE_BYTES) throw new Error(`it is larger than ${MAX_FILE_BYTES} bytes`)
  const bytes = readFileSync(path)
  if (!isUtf8(bytes)) throw new Error('it is not UTF-8')
  // Without the byte order mark that some editors write.
  return new TextDecoder().decode(bytes)
}

/** Members that nobody knows are told of where they stand, what is missing where it should be. */
function problemsOfIssue(issue: z.core.$ZodIssue): readonly Problem[] {
  const { path: place, message } = issue
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({ place: [...place, key], message: 'is no member that this server knows' }))
  const isMissing = issue.code === 'invalid_type' && message.endsWith('received undefined')
  return [{ place, message: isMissing ? 'is missing' : message }]
}

type Problem = { readonly place: readonly PropertyKey[]; readonly message: string }

/** tools[2].url */
const nameOf = (place: readonly PropertyKey[]): string => {
  const steps = place.map((step) => {
    if (typeof step === 'number') return `[${step}]`
    return /^[\w$-]+$/.test(String(step)) ? `.${String(step)}` : `[${JSON.stringify(step)}]`
  })
  return steps.length === 0 ? '' : `${steps.join('').replace(/^\./, '')}: `
}

/** Schemas are judged also where something else is wrong, so that one look shows everything. */
async function schemaProblems(value: Json, faultOf: FaultOfSchema): Promise<Problem[]> {
  const tools = isJsonObject(value) && Array.isArray(value['tools']) ? value['tools'] : []
  const problems: Problem[] = []
  for (const [index, tool] of tools.entries()) {
    for (const member of ['input_schema', 'output_schema']) {
      const schema = isJsonObject(tool) ? tool[member] : undefined
      const fault = schema !== undefined && isJsonObject(schema) ? await faultOf(schema) : undefined
      if (fault !== undefined) problems.push({ place: ['tools', index, member], message: `is not usable: ${fault}` })
    }
  }
  return problems
}

type Variables = Readonly<Record<string, string | undefined>>

/** What only shows when the whole file is looked at, or the variables. */
const referenceProblems = (file: HostConfigFile, env: Variables): Problem[] => [
  ...repeated(
    'tenants',
    (file.tenants ?? []).map(({ id }) => id),
  ),
  ...repeated(
    'tools',
    (file.tools ?? []).map(({ name }) => name),
  ),
  ...tenantProblems(file, env),
  ...toolProblems(file, env),
]

function repeated(what: 'tenants' | 'tools', names: readonly string[]): Problem[] {
  const [member, noun] = what === 'tenants' ? ['id', 'tenants'] : ['name', 'tools']
  return names.flatMap((name, index) =>
    names.indexOf(name) === index
      ? []
      : [{ place: [what, index, member], message: `two ${noun} are called "${name}"` }],
  )
}

function tenantProblems({ tenants = [] }: HostConfigFile, env: Variables): Problem[] {
  const problems: Problem[] = []
  const owners = new Map<string, string>()
  for (const [index, { id, token_env: variables }] of tenants.entries()) {
    for (const name of [variables].flat()) {
      const token = env[name] ?? ''
      const isTaken = (owners.get(token) ?? id) !== id
      const message =
        faultOfToken(name, token) ?? (isTaken ? `the token in ${name} is another tenant's too` : undefined)
      if (message === undefined) owners.set(token, id)
      else problems.push({ place: ['tenants', index, 'token_env'], message })
    }
  }
  return problems
}

function toolProblems({ tenants, tools = [] }: HostConfigFile, env: Variables): Problem[] {
  const known = tenants === undefined ? ['local'] : tenants.map(({ id }) => id)
  return tools.flatMap(({ token_env: variable, tenants: owners = [] }, index): Problem[] => [
    ...problemOfToken(['tools', index, 'token_env'], variable, env),
    ...owners.flatMap((owner, at) =>
      known.includes(owner)
        ? []
        : [{ place: ['tools', index, 'tenants', at], message: `there is no tenant "${owner}"` }],
    ),
  ])
}

function problemOfToken(place: readonly PropertyKey[], name: string | undefined, env: Variables): Problem[] {
  const message = name === undefined ? undefined : faultOfToken(name, env[name] ?? '')
  return message === undefined ? [] : [{ place, message }]
}

function faultOfToken(name: string, token: string): string | undefined {
  if (token === '') return `the variable ${name} is not set, or empty`
  return BEARER_TOKEN.test(token) ? undefined : `the variable ${name} holds characters that no header may have`
}
