import type { JsonObject } from '../../kernel/json.ts'
import { membersRefusedByAnthropic } from '../../contract/provider-schema/anthropic-members.ts'
import { NotStrict } from '../../contract/provider-schema/not-strict.ts'
import { portableSchema } from '../../contract/provider-schema/portable-schema.ts'
import type { PathRemark } from '../../contract/provider-schema/schema-remark.ts'
import { strictSchema } from '../../contract/provider-schema/strict-schema.ts'
import type { ToolMetadata } from '../../contract/session-request.ts'
import { describeFaults } from './describe-faults.ts'
import { refusedAsItIs } from './refused-as-it-is.ts'

/** Whose rules a finding is about; `all` for what no model is well served with. */
export type LintedProvider = 'openai' | 'openai_strict' | 'anthropic' | 'mcp' | 'all'

/** What a provider makes of a tool, and what to do about it. */
export type Finding = {
  readonly provider: LintedProvider
  /**
   * `refused`: a request that has the tool as it is written is answered 400. `lossy`: it is taken, and the model is told
   * less than the tool is held to. `advice`: models do worse with it than they could.
   */
  readonly severity: 'refused' | 'lossy' | 'advice'
  /** A JSON Pointer into the metadata of the tool, such as `/input_schema/properties/a`. */
  readonly path: string
  readonly problem: string
  readonly remedy: string
}

/** Names that OpenAI and Anthropic take (contract A22). */
const NAME = /^[A-Za-z0-9_-]{1,64}$/
const MCP_NAME = /^[A-Za-z0-9_.-]{1,128}$/

/** Refused by servers that imitate what OpenAI was until 2025. */
const SURE_DESCRIPTION = 1024

/**
 * What each provider refuses, or does not tell its model, of a tool.
 *
 * @returns nothing for a tool that all of them take as it is
 */
export function lint(tool: ToolMetadata): readonly Finding[] {
  const { input_schema: input, output_schema: output } = tool
  const portable = portableSchema(input)
  const lossy = portable.remarks.map((remark) => ({ ...remark, effect: 'looser' }) as const)
  return withoutRepeated([
    ...nameFindings(tool.name),
    ...refusedAsItIs(input).map((finding) => ({ ...finding, path: inInput(finding.path) })),
    ...findingsOf('anthropic', membersRefusedByAnthropic(portable.schema)),
    ...lossy.flatMap((remark) => findingsOf(/OpenAI/.test(remark.reason) ? 'openai' : 'all', [remark])),
    ...findingsOf('openai_strict', strictRemarks(input)),
    ...outputFindings(output),
    ...descriptionFindings(tool.description),
    ...describeFaults(input).map((finding) => ({ ...finding, path: inInput(finding.path) })),
  ])
}

const inInput = (path: string): string => `/input_schema${path.slice(1)}`

const findingsOf = (provider: LintedProvider, remarks: readonly PathRemark[]): readonly Finding[] =>
  remarks.map(({ path, effect, reason, remedy }) => ({
    provider,
    severity: effect === 'refused' ? 'refused' : 'lossy',
    path: inInput(path),
    problem: reason,
    remedy,
  }))

function strictRemarks(input: JsonObject): readonly PathRemark[] {
  try {
    return strictSchema(input).remarks
  } catch (error) {
    if (!(error instanceof NotStrict)) throw error
    const { path, message, remedy } = error
    return [{ path, effect: 'not_strict', reason: `strict mode is not possible: ${message}`, remedy }]
  }
}

function nameFindings(name: string): readonly Finding[] {
  const fault = (provider: LintedProvider, rule: RegExp): Finding => ({
    provider,
    severity: 'refused',
    path: '/name',
    problem: `the name ${JSON.stringify(name)} does not match ${rule.source}`,
    remedy: 'choose 1 to 64 of the characters A-Z a-z 0-9 _ -',
  })
  return [
    ...(NAME.test(name) ? [] : [fault('openai', NAME), fault('anthropic', NAME)]),
    ...(MCP_NAME.test(name) ? [] : [fault('mcp', MCP_NAME)]),
  ]
}

function outputFindings(output: JsonObject | undefined): readonly Finding[] {
  if (output === undefined || Object.keys(output).length === 0 || output['type'] === 'object') return []
  const finding: Finding = {
    provider: 'mcp',
    severity: 'lossy',
    path: '/output_schema',
    problem: 'clients of revisions of MCP before 2026-07-28 take structured results that are objects only',
    remedy: 'give an object; else Brain shows it to them as { "result": … }',
  }
  return [finding]
}

function descriptionFindings(description: string): readonly Finding[] {
  const { length } = description
  const said = (problem: string, remedy: string, provider: LintedProvider = 'all'): Finding => ({
    provider,
    severity: 'advice',
    path: '/description',
    problem,
    remedy,
  })
  if (description.trim() === '')
    return [said('there is no description', 'say what the tool does, when to call it and what comes back')]
  if (length <= SURE_DESCRIPTION) return []
  return [
    said(
      `the description has ${length} characters, and some servers that speak like OpenAI refuse more than ${SURE_DESCRIPTION}`,
      'shorten it for them',
      'openai',
    ),
  ]
}

function withoutRepeated(findings: readonly Finding[]): readonly Finding[] {
  const seen = new Set<string>()
  return findings.filter(({ provider, severity, path, problem }) => {
    const key = JSON.stringify([provider, severity, path, problem])
    const isNew = !seen.has(key)
    seen.add(key)
    return isNew
  })
}
