/** One fenced block of a Markdown page. */
export type FencedBlock = {
  readonly line: number
  readonly language: string
  /** Words after the language: `run`, `background`, `output`. */
  readonly marks: readonly string[]
  readonly text: string
}

const FENCE = /^```(\S*)[ \t]*([^\n]*)\n([^]*?)^```[ \t]*$/gm

export function fencedBlocks(markdown: string): FencedBlock[] {
  return [...markdown.matchAll(FENCE)].map(({ index, 1: language = '', 2: marks = '', 3: text = '' }) => ({
    line: markdown.slice(0, index).split('\n').length,
    language,
    marks: marks.split(/\s+/).filter((mark) => mark !== ''),
    text,
  }))
}
