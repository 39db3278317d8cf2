import { readFileSync, statSync } from 'node:fs'
import { z } from 'zod'
import { messageOf } from '../kernel/errors.ts'
import { isIdentifier } from '../kernel/ids.ts'
import { parseJson } from '../kernel/json.ts'
import type { ModelDefinition, ProviderDefinition } from '../contract/model-catalogue.ts'

const MAX_FILE_BYTES = 4 * 1024 * 1024

/** Names that this server gives itself; they are reached elsewhere through their own variables. */
const RESERVED: Readonly<Record<string, string>> = {
  'vercel-ai-gateway': 'set BRAIN_MODEL_BASE_URL instead',
  openai: 'set BRAIN_OPENAI_BASE_URL instead',
  anthropic: 'set BRAIN_ANTHROPIC_BASE_URL instead',
  scripted: 'it is the provider of BRAIN_SCRIPTED_MODEL',
}

/** Where a provider is reached: what is put behind it begins with a slash, so it must not end in one. */
export const baseUrl = z
  .string()
  .refine(isUsableBase, 'must be an http or https URL without user, query or fragment')
  .transform((text) => text.replace(/\/+$/, ''))

function isUsableBase(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, username, password, search, hash } = new URL(text)
  return /^https?:$/.test(protocol) && username + password + search + hash === '' && !/[?#]/.test(text)
}

const tokens = z.int().positive()
const price = z.number().nonnegative()

const modelSchema = z.strictObject({
  id: z.string().min(1).max(256).regex(/^\S+$/, 'must not hold white space'),
  context_window_tokens: tokens.optional(),
  max_output_tokens: tokens.optional(),
  attachment: z.boolean().optional(),
  reasoning: z.boolean().optional(),
  tool_call: z.boolean().optional(),
  structured_output: z.boolean().optional(),
  input_modalities: z.array(z.string()).optional(),
  output_modalities: z.array(z.string()).optional(),
  cost: z
    .strictObject({ input: price, output: price, cache_read: price.optional(), cache_write: price.optional() })
    .optional(),
})

const dialect = z.enum(
  ['openai_responses', 'anthropic_messages', 'openai_chat'],
  'must be openai_responses, anthropic_messages or openai_chat',
)

const providerSchema = z
  .strictObject({
    name: z.string().refine(isIdentifier, 'must be an identifier: letters, digits and . _ : - (at most 128)'),
    dialect,
    base_url: baseUrl,
    namespaced_model: z.boolean().default(false),
    supports_response_format: z.boolean().optional(),
    models: z.array(modelSchema).max(10_000).default([]),
  })
  .refine(({ name }) => !Object.hasOwn(RESERVED, name), {
    path: ['name'],
    error: ({ input }) => {
      const { name } = input as { name: string }
      return `"${name}" is a name of this server's own: ${RESERVED[name]}`
    },
  })
  .refine((provider) => provider.dialect !== 'anthropic_messages' || provider.supports_response_format !== true, {
    path: ['supports_response_format'],
    error: 'must not be true with dialect anthropic_messages, which has no response_format',
  })

const fileSchema = z.strictObject({
  providers: z
    .array(providerSchema)
    .max(1000)
    .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, 'two providers have the same name'),
})

type Bases = {
  readonly gateway: string | undefined
  readonly openai: string | undefined
  readonly anthropic: string | undefined
}

/** The providers that every server has (contract 7.4). No list of their models is shipped: it would be out of date. */
export function ownProviders({ gateway, openai, anthropic }: Bases): readonly ProviderDefinition[] {
  const responses = { dialect: 'openai_responses', supportsResponseFormat: true, models: [] } as const
  return [
    {
      ...responses,
      name: 'vercel-ai-gateway',
      baseUrl: withVersion(gateway ?? 'https://ai-gateway.vercel.sh/v1'),
      namespacedModel: true,
    },
    {
      ...responses,
      name: 'openai',
      baseUrl: withVersion(openai ?? 'https://api.openai.com/v1'),
      namespacedModel: false,
    },
    {
      name: 'anthropic',
      dialect: 'anthropic_messages',
      baseUrl: withVersion(anthropic ?? 'https://api.anthropic.com/v1'),
      namespacedModel: false,
      supportsResponseFormat: false,
      models: [],
    },
  ]
}

/** People name these hosts with and without the version. */
const withVersion = (base: string): string => (new URL(base).pathname === '/' ? `${base}/v1` : base)

/**
 * Reads BRAIN_PROVIDERS_FILE.
 * @returns its providers, or what is wrong with it
 */
export function readProvidersFile(
  path: string,
): { readonly providers: readonly ProviderDefinition[] } | { readonly problem: string } {
  try {
    if (statSync(path).size > MAX_FILE_BYTES) return { problem: `${path} is larger than ${MAX_FILE_BYTES} bytes` }
    const parsed = fileSchema.safeParse(parseJson(readFileSync(path, 'utf8'), path))
    if (!parsed.success) return { problem: `${path}: ${z.prettifyError(parsed.error)}` }
    return { providers: parsed.data.providers.map(toDefinition) }
  } catch (error) {
    return { problem: messageOf(error) }
  }
}

const toDefinition = (read: z.output<typeof providerSchema>): ProviderDefinition => ({
  name: read.name,
  dialect: read.dialect,
  baseUrl: read.base_url,
  namespacedModel: read.namespaced_model,
  supportsResponseFormat: read.supports_response_format ?? read.dialect !== 'anthropic_messages',
  models: read.models as readonly ModelDefinition[],
})
