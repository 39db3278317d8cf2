import { z } from 'zod'
import { BrainError } from '../../kernel/errors.ts'
import { identifierSchema } from '../../contract/name-schemas.ts'
import type { Json } from '../../kernel/json.ts'
import type { Block } from '../../contract/message.ts'
import { ALL_MEDIA, ModelFailure, type ModelCall, type ModelProvider } from '../model-provider.ts'

/** What the scripted model says to one call (contract A23). */
const answerSchema = z.strictObject({
  text: z.string().optional(),
  tool_calls: z.array(z.strictObject({ name: z.string().min(1), input: z.unknown() })).optional(),
  error: z.strictObject({ code: identifierSchema, message: z.string() }).optional(),
})
const scriptSchema = z.array(answerSchema).min(1).max(10_000)
export type ScriptedAnswer = z.output<typeof answerSchema>

/**
 * Reads a script: what a session's `model.script` or the operator's file holds.
 * @throws BrainError `invalid_request` naming the first faults
 */
export function parseScript(value: unknown, what: string): readonly ScriptedAnswer[] {
  const parsed = scriptSchema.safeParse(value)
  if (!parsed.success) throw new BrainError('invalid_request', `Cannot use ${what}: ${z.prettifyError(parsed.error)}`)
  return parsed.data
}

/**
 * The provider `scripted` (contract A23): answers from a list, one answer per model call of the session, the last one
 * for ever after. For demos and tests; it exists only where BRAIN_SCRIPTED_MODEL=1.
 */
export function scriptedProvider(operatorScript: readonly ScriptedAnswer[] | undefined): ModelProvider {
  // Checked once for each session: a long script takes longer to read than its answers.
  const parsed = new WeakMap<object, readonly ScriptedAnswer[]>()
  const parseOnce = (settings: Json): readonly ScriptedAnswer[] => {
    const known = typeof settings === 'object' && settings !== null ? parsed.get(settings) : undefined
    if (known !== undefined) return known
    const script = parseScript(settings, 'model.script')
    if (typeof settings === 'object' && settings !== null) parsed.set(settings, script)
    return script
  }
  const scriptOf = (settings: Json | undefined): readonly ScriptedAnswer[] => {
    if (settings !== undefined && settings !== null) return parseOnce(settings)
    if (operatorScript !== undefined) return operatorScript
    throw new BrainError(
      'invalid_request',
      'Cannot use model provider "scripted": give model.script, or set BRAIN_SCRIPTED_MODEL_FILE on the server',
    )
  }
  return {
    id: 'scripted',
    mediaInputs: ALL_MEDIA,
    checkModel: (model) => void scriptOf(model['script']),
    async call(call) {
      call.signal.throwIfAborted()
      const script = scriptOf(call.settings)
      const answer = script[Math.min(call.callIndex, script.length - 1)]
      if (answer === undefined)
        throw new ModelFailure('model_provider_failed', 'The script of model "scripted" is empty')
      if (answer.error !== undefined) throw new ModelFailure(answer.error.code, answer.error.message)
      return speak(answer, call)
    },
  }
}

function speak(answer: ScriptedAnswer, call: ModelCall): Awaited<ReturnType<ModelProvider['call']>> {
  const content: Block[] = []
  if (answer.text !== undefined) {
    content.push({ type: 'text', text: answer.text })
    call.onFrame({ type: 'assistant_delta', index: 0, text: answer.text })
  }
  for (const [index, use] of (answer.tool_calls ?? []).entries()) {
    const id = `scripted_${call.callIndex}_${index}`
    content.push({ type: 'tool_use', id, name: use.name, input: use.input as Json })
    call.onFrame({ type: 'tool_call_delta', index: content.length - 1, id, name: use.name })
  }
  const calls = (answer.tool_calls ?? []).length > 0
  return { message: { role: 'assistant', content }, stop_reason: calls ? 'tool_use' : 'end_turn', usage: {} }
}
