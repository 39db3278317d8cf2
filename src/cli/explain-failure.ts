import { printableLines } from './printable.ts'
import { messageOf } from '../kernel/errors.ts'

/** What is printed when a command fails; a defect of ours keeps its stack. */
export function explainFailure(error: unknown): string {
  const isOurs = error instanceof Error && (error.name === 'BrainError' || error.name === 'ConfigError')
  if (isOurs) return error.message
  // What goes wrong with a source is no defect of ours either.
  if (error instanceof Error && error.message.startsWith('Cannot ')) return printableLines(error.message).join('\n')
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code === 'EADDRINUSE') return `Cannot listen: ${messageOf(error)}; choose another BRAIN_LISTEN`
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
