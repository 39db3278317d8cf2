import type { ToolMetadata } from '../../contract/session-request.ts'
import { declarationOf } from './declared-tool.ts'

/**
 * What somebody who has no access to a tool's code must know of it, as JSON: name, description, and the schemas of its
 * input, output and options. Takes factories of every copy of this package.
 *
 * @throws TypeError for what is no factory made by `tool()` or `bindTool()`, and for options that JSON Schema cannot say
 */
export function toolMetadata(factory: unknown): ToolMetadata {
  const declared = declarationOf(factory)
  if (declared === undefined)
    throw new TypeError('Cannot read the metadata of a tool: it must be a factory made by tool() or bindTool()')
  return declared.metadata()
}
