import type { JsonObject } from '../../kernel/json.ts'
import { countMedia } from './check-request.ts'
import type { RemoteCall } from './dialect.ts'
import type { Question } from './wire/ask.ts'

/** What goes out for a call; says so to those who watch the session. */
export function questionOf(
  call: RemoteCall,
  { path, headers, body }: { path: string; headers: Readonly<Record<string, string>>; body: JsonObject },
): Question {
  const { provider, limits, signal, redact } = call
  const text = JSON.stringify(body)
  showRequest(call, text)
  return { provider: provider.name, url: provider.baseUrl + path, headers, body: text, limits, signal, redact }
}

export const showRequest = ({ request, onFrame }: RemoteCall, body: string): void =>
  onFrame({
    type: 'model_request',
    input_bytes: Buffer.byteLength(body),
    media_inputs: countMedia(request.messages),
  })
