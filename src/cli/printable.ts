/** Control characters, and the marks that change the direction of text: a terminal would obey them. */
// eslint-disable-next-line no-control-regex -- control characters are what is looked for
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]+/g

/** Text from a guest or a server as one line that a terminal shows and does not obey (design 2). */
export const printable = (text: string): string => text.replace(UNPRINTABLE, ' ').trim()

/** The same, line by line, with tabs as spaces. */
export const printableLines = (text: string): string[] =>
  text
    .replaceAll('\t', '    ')
    .split(/\r\n|\r|\n/)
    .map((line) => line.replace(UNPRINTABLE, ' ').trimEnd())

/** Cut to a width, with a mark where something is missing. */
export function clipped(text: string, width: number): string {
  if (text.length <= width) return text
  // A surrogate pair is not cut in two.
  const cut = text.slice(0, width - 1).replace(/[\ud800-\udbff]$/, '')
  return `${cut}…`
}
