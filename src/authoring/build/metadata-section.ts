import type { ToolMetadata } from '../../contract/session-request.ts'
import { leb128 } from './leb128.ts'

const SECTION = 'brain:tool-metadata'

/** What admission takes (contract A7). */
const MOST_BYTES = 64 * 1024

/**
 * A component with what its author says about it, as the last of its sections.
 *
 * @throws Error for more than admission takes
 */
export function withMetadata(component: Uint8Array, metadata: ToolMetadata): Uint8Array {
  const text = Buffer.from(JSON.stringify(metadata))
  if (text.length > MOST_BYTES)
    throw new Error(
      `Cannot describe tool "${metadata.name}": its description and schemas have ${text.length} bytes, and ${MOST_BYTES} are allowed. Say less in them`,
    )
  const name = Buffer.from(SECTION)
  const content = Buffer.concat([Buffer.from(leb128(name.length)), name, text])
  return Buffer.concat([component, Buffer.from([0, ...leb128(content.length)]), content])
}
