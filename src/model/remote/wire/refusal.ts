import { setTimeout as delay } from 'node:timers/promises'
import { clip } from '../../../kernel/errors.ts'
import { isJsonObject, type Json } from '../../../kernel/json.ts'
import { ModelFailure } from '../../model-provider.ts'
import type { Answer } from './exchange.ts'

/** A provider that refuses need not end its answer. */
const PATIENCE_MS = 2000
const MAX_REASON = 1000

const REMEDIES: Readonly<Record<number, string>> = {
  401: 'the api_key of the session is not valid there',
  403: 'the api_key of the session may not do this',
  404: 'check the name of the model and the base URL of the provider',
  413: 'the conversation is too large for it',
  429: 'wait before the next message, or raise the quota of the key',
}

/**
 * A provider's own word that it did not do the work: certain, whatever the status (contract 7.4).
 * @param redact applied before anything is shortened, so that no part of a key is left over
 */
export async function refusalOf(
  provider: string,
  answer: Answer,
  { maxBytes, redact }: { maxBytes: number; redact: (text: string) => string },
): Promise<ModelFailure> {
  const { status } = answer
  const said = reasonOf(await textOf(answer, maxBytes), redact)
  const remedy = isRedirect(status) ? 'redirects are not followed: correct its base URL' : REMEDIES[status]
  const reason = [said, remedy].filter((part) => part !== undefined && part !== '').join('; ')
  return new ModelFailure(
    'model_provider_failed',
    `Provider "${provider}" refused the call with HTTP ${status}${reason === '' ? '' : `: ${reason}`}`,
    { retryable: isTransient(status) },
  )
}

const isRedirect = (status: number): boolean => status >= 300 && status < 400

/** Whether the same request may succeed later (contract 0.4). */
export const isTransient = (status: number): boolean => status === 408 || status === 429 || status >= 500

async function textOf(answer: Answer, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  const read = async (): Promise<void> => {
    for await (const chunk of answer.body) {
      chunks.push(chunk)
      bytes += chunk.length
      if (maxBytes > 0 && bytes >= maxBytes) return
    }
  }
  const timer = new AbortController()
  // A refusal stands by its status: what cannot be read of its text is left out.
  const done = read().catch(() => undefined)
  await Promise.race([done, delay(PATIENCE_MS, undefined, { signal: timer.signal }).catch(() => undefined)])
  timer.abort()
  answer.close()
  const all = Buffer.concat(chunks)
  return (maxBytes > 0 ? all.subarray(0, maxBytes) : all).toString('utf8')
}

/** The message in one of the forms that providers use, or the text itself. */
function reasonOf(text: string, redact: (text: string) => string): string {
  const said = messageOfJson(text)
  return clip(redact(said ?? text.replaceAll(/\s+/g, ' ').trim()), MAX_REASON)
}

function messageOfJson(text: string): string | undefined {
  try {
    return messageIn(JSON.parse(text) as Json)
  } catch {
    return undefined // Not JSON, or cut off: it is shown as it is.
  }
}

/** What a provider says in an error object, wherever it comes. */
export function messageIn(value: Json | undefined): string | undefined {
  if (typeof value === 'string') return value
  if (!isJsonObject(value)) return undefined
  return messageIn(value['error']) ?? messageIn(value['message']) ?? messageIn(value['detail'])
}
