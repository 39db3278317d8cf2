import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { describeLimit, type Limits } from '../../contract/limits.ts'
import { type ComponentId, parseComponentId } from '../../kernel/ids.ts'
import { UPLOAD } from './component-files.ts'
import { onStorage } from './durable-files.ts'
import { refusal } from './refusal.ts'

export type Upload = { readonly id: ComponentId; readonly bytes: number }

/**
 * Streams an upload into a staged directory, and names it. Holds one chunk at a time.
 *
 * @throws BrainError `invalid_request` as soon as the limit is crossed; `storage_unavailable`; whatever the stream throws.
 */
export async function receiveUpload(
  chunks: AsyncIterable<Uint8Array>,
  staged: string,
  limits: Limits,
): Promise<Upload> {
  const hash = createHash('sha256')
  let bytes = 0
  const file = await onStorage('store the upload', () => open(join(staged, UPLOAD), 'wx', 0o600))
  try {
    for await (const chunk of chunks) {
      bytes += chunk.length
      if (bytes > limits.packageBytes)
        throw refusal('too_large', `it is larger than ${describeLimit('packageBytes', limits)}`)
      hash.update(chunk)
      await onStorage('store the upload', () => file.appendFile(chunk))
    }
  } finally {
    await file.close()
  }
  return { id: parseComponentId(hash.digest('hex')), bytes }
}
