import type { Block, Message } from '../../contract/message.ts'
import { printableLines } from '../printable.ts'

const WIDTH = 112
const MOST_LINES = 14

/** A transcript as lines for people: who said what, calls and results included. */
export function transcriptLines(messages: readonly Message[]): string[] {
  return messages.flatMap(({ role, content }) => content.flatMap((block) => blockLines(role, block)))
}

function blockLines(role: string, block: Block): string[] {
  switch (block.type) {
    case 'text':
      return labelled(role, block.text)
    case 'tool_use':
      return labelled(`${role} calls ${block.name}`, JSON.stringify(block.input))
    case 'tool_result':
      return labelled(block.is_error ? 'error' : 'result', contentText(block.content))
    case 'image':
    case 'file':
      return labelled(role, block.url)
    case 'native':
      return labelled(role, `(${block.format})`)
    default:
      return block satisfies never
  }
}

/** Text content reads as text; any other value as its JSON. */
function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  if (Array.isArray(content) && content.every((part: unknown) => typeof textPart(part) === 'string'))
    return content.map(textPart).join('\n')
  return JSON.stringify(content)
}

const textPart = (part: unknown): unknown =>
  typeof part === 'object' && part !== null && 'text' in part ? part.text : undefined

function labelled(label: string, text: string): string[] {
  const lines = printableLines(text.trimEnd()).flatMap(folded)
  const shown = lines.length > MOST_LINES ? [...lines.slice(0, MOST_LINES - 1), `… ${lines.length} lines`] : lines
  const [first = '', ...rest] = shown
  return [`  ${printableLines(label).join(' ')}: ${first}`, ...rest.map((line) => `      ${line}`.trimEnd())]
}

/** A long line in pieces of the width; characters stay whole. */
function folded(line: string): string[] {
  const characters = Array.from(line)
  const pieces: string[] = []
  for (let at = 0; at === 0 || at < characters.length; at += WIDTH)
    pieces.push(characters.slice(at, at + WIDTH).join(''))
  return pieces
}
