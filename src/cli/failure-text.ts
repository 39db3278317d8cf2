import { printableLines } from './printable.ts'

/** What a command says of a failure: a refusal as it is, anything else, which is a defect, with where it comes from. */
export function failureText(error: unknown): string {
  const isRefusal = error instanceof Error && error.message.startsWith('Cannot ')
  const text = error instanceof Error ? (isRefusal ? error.message : (error.stack ?? error.message)) : String(error)
  return printableLines(text).join('\n').trim()
}
