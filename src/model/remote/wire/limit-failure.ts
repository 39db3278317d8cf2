import { describeLimit, type LimitName, type Limits } from '../../../contract/limits.ts'
import { ModelFailure } from '../../model-provider.ts'

const WHAT = {
  modelStreamBytes: 'its stream',
  modelFrameBytes: 'one event of its stream',
  modelOutputBytes: 'its answer',
} as const satisfies Partial<Record<LimitName, string>>

/** A provider sent more than this server takes; nothing is in doubt, the answer is thrown away. */
export function exceeded(provider: string, name: keyof typeof WHAT, limits: Limits): ModelFailure {
  return new ModelFailure(
    'model_output_invalid',
    `Cannot use the answer of provider "${provider}": ${WHAT[name]} is larger than ${describeLimit(name, limits)}`,
  )
}

/** What a provider sent has no meaning here. */
export const unusable = (provider: string, reason: string, cause?: unknown): ModelFailure =>
  new ModelFailure('model_output_invalid', `Cannot use the answer of provider "${provider}": ${reason}`, { cause })
