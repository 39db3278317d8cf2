import type { AgentloopEntry, ToolEntry } from '../sandbox.ts'

// What an entry is called with, as texts in a row, in one order for the server that sends them and the box that reads them.

const TOOL_TEXTS = 3
const AGENTLOOP_TEXTS = 9

/** How many texts belong to the entry; guest paths of mounts follow them. */
export const entryTexts = { tool: TOOL_TEXTS, agentloop: AGENTLOOP_TEXTS } as const

export function packEntry(entry: ToolEntry | AgentloopEntry): readonly string[] {
  if (entry.role === 'tool') return [String(entry.deadlineAtMs), entry.configuration, entry.input]
  const { input, transcript, kv, events, configuration, system, tools, logicalTimeMs, deterministicSeed } = entry
  return [input, transcript, kv, events, configuration, system, tools, String(logicalTimeMs), deterministicSeed]
}

export type Texts = readonly (string | undefined)[]

export function unpackToolEntry([deadline = '0', configuration = '', input = '']: Texts) {
  return { inputJson: input, configurationJson: configuration, deadlineAtMs: BigInt(deadline) }
}

export function unpackAgentloopEntry(texts: Texts) {
  const [input = '', transcript = '', kv = '', events = '', configuration = '', system = '', tools = ''] = texts
  const [time = '0', seed = ''] = texts.slice(7)
  return {
    inputJson: input,
    transcriptJson: transcript,
    kvJson: kv,
    eventsJson: events,
    configurationJson: configuration,
    system,
    toolsJson: tools,
    runtime: { logicalTimeMs: BigInt(time), deterministicSeed: new Uint8Array(Buffer.from(seed, 'hex')) },
  }
}
