import { createHash } from 'node:crypto'
import { BrainError } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { Limits } from '../../contract/limits.ts'
import type { ModelResult } from '../../contract/message.ts'
import type { Dialect as DialectName, ModelCatalogue, ProviderDefinition } from '../../contract/model-catalogue.ts'
import { ModelFailure, type ModelCall, type ModelDemands, type ModelProvider } from '../model-provider.ts'
import { chatDialect } from './chat/chat-dialect.ts'
import { checkMessages, checkRequest } from './check-request.ts'
import type { Dialect } from './dialect.ts'
import { messagesDialect } from './messages/messages-dialect.ts'
import { responsesDialect } from './responses/responses-dialect.ts'
import { textOf } from './wire/fields.ts'
import { withoutKey } from './without-key.ts'

const DIALECTS: Readonly<Record<DialectName, Dialect>> = {
  openai_responses: responsesDialect,
  anthropic_messages: messagesDialect,
  openai_chat: chatDialect,
}

/** A provider that is reached over HTTP, in one of the wires that this server speaks (contract 7.4). */
export function remoteProvider(definition: ProviderDefinition, limits: Limits): ModelProvider {
  const dialect = DIALECTS[definition.dialect]
  return {
    id: definition.name,
    mediaInputs: dialect.mediaInputs,
    checkModel: (model, demands) => checkModel(definition, dialect, { model, demands }),
    call: (call) => ask(call, definition, { dialect, limits }),
  }
}

function checkModel(
  definition: ProviderDefinition,
  dialect: Dialect,
  { model, demands }: { model: JsonObject; demands: ModelDemands },
): void {
  const { name, namespacedModel, supportsResponseFormat, models } = definition
  const refuse = (reason: string): never => {
    throw new BrainError('invalid_request', `Cannot use provider "${name}": ${reason}`)
  }
  const wanted = textOf(model['name'])
  if (namespacedModel && !/^[^/]+\/.+$/.test(wanted))
    refuse(`its models are called vendor/model, and "${wanted}" is not`)
  const isKnownWithout = models.some(({ id, structured_output: can }) => id === wanted && can === false)
  if (demands.responseFormat !== undefined && (!supportsResponseFormat || isKnownWithout))
    refuse(`${isKnownWithout ? `its model "${wanted}"` : 'it'} has no response_format`)
  checkMessages(name, dialect, demands.transcript)
}

async function ask(
  call: ModelCall,
  provider: ProviderDefinition,
  { dialect, limits }: { dialect: Dialect; limits: Limits },
): Promise<ModelResult> {
  checkRequest(provider, dialect, call.request)
  const redact = (text: string): string => withoutKey(text, call.apiKey)
  try {
    return await dialect.ask({ ...call, provider, limits, redact })
  } catch (error) {
    if (!(error instanceof ModelFailure)) throw error
    const { code, retryable, ambiguous, response } = error
    // The cause is left behind: it may quote what was sent.
    throw new ModelFailure(code, redact(error.message), { retryable, ambiguous, response })
  }
}

/** What `GET /v1/models` answers (contract 1.1). */
export function catalogueOf(definitions: readonly ProviderDefinition[]): ModelCatalogue {
  const providers = definitions.map(({ name, dialect, models }) => ({
    id: name,
    dialect,
    media_inputs: DIALECTS[dialect].mediaInputs,
    models,
  }))
  return { snapshot_digest: createHash('sha256').update(JSON.stringify(providers)).digest('hex'), providers }
}
