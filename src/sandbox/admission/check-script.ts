import { refusal } from './refusal.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true })
const ENTRY = /^export function instantiate\(/gm
const EXPORT = /^export\b/gm
const IMPORT = /\bimport\s*(?:\(|\.)|^[ \t]*import\b/gm
/** The default of an argument that boxes always give; it is never evaluated there. */
const KNOWN_IMPORT = 'import.meta.url'

const count = (text: string, pattern: RegExp): number => Array.from(text.matchAll(pattern)).length

/**
 * Whether generated JavaScript has the shape in which boxes load it. That is all it says: the script stays hostile, and
 * the box is what holds it (sandbox J1).
 *
 * @throws BrainError `invalid_request`
 */
export function checkScript(script: Buffer): void {
  const cannot = (reason: string) => refusal('cannot_transpile', `its generated JavaScript ${reason}`)
  let text: string
  try {
    text = utf8.decode(script)
  } catch {
    throw cannot('is not UTF-8')
  }
  if (count(text, ENTRY) !== 1) throw cannot('does not export one function "instantiate"')
  if (count(text, EXPORT) > 2) throw cannot('exports more than a component')
  const imports = Array.from(text.matchAll(IMPORT), ({ index }) => text.slice(index, index + KNOWN_IMPORT.length))
  if (imports.length > 1 || imports.some((found) => found !== KNOWN_IMPORT))
    throw cannot('imports what no component needs')
}
