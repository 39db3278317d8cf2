import { BrainError } from '../../../src/kernel/errors.ts'
import { defaultLimits, type Limits } from '../../../src/contract/limits.ts'
import type { Message, ModelRequest, ModelResult } from '../../../src/contract/message.ts'
import type { ProviderDefinition } from '../../../src/contract/model-catalogue.ts'
import { ModelFailure, type ModelFrame } from '../../../src/model/model-provider.ts'
import { remoteProvider } from '../../../src/model/remote/remote-provider.ts'

export const KEY = 'sk-test-0123456789'

export const user = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] })

export type Lab = {
  readonly frames: ModelFrame[]
  ask(request?: Partial<ModelRequest>, options?: { model?: string; key?: string }): Promise<ModelResult>
  /** The failure that a call comes to. */
  fail(request?: Partial<ModelRequest>, options?: { key?: string }): Promise<ModelFailure | BrainError>
}

/** A provider that is reached at `baseUrl`, and what it shows live. */
export function openLab(
  baseUrl: string,
  definition: Partial<ProviderDefinition> & Pick<ProviderDefinition, 'dialect'>,
  limits: Partial<Limits> = {},
): Lab {
  const provider = remoteProvider(
    {
      name: 'test',
      baseUrl,
      namespacedModel: false,
      supportsResponseFormat: definition.dialect !== 'anthropic_messages',
      models: [],
      ...definition,
    },
    { ...defaultLimits, ...limits },
  )
  const frames: ModelFrame[] = []
  const ask: Lab['ask'] = (request = {}, { model = 'm', key = KEY } = {}) => {
    frames.length = 0
    return provider.call({
      model,
      apiKey: key,
      request: { messages: [user('hi')], ...request },
      callIndex: 0,
      settings: null,
      signal: new AbortController().signal,
      onFrame: (frame) => void frames.push(frame),
    })
  }
  return {
    frames,
    ask,
    async fail(request, options) {
      try {
        await ask(request, options)
      } catch (error) {
        if (error instanceof ModelFailure || error instanceof BrainError) return error
        throw error
      }
      throw new Error('the call did not fail')
    },
  }
}
