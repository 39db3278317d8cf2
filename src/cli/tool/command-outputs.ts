import type { Logger } from '../../kernel/logger.ts'

/** Where a command writes lines: what it was asked for, and what is only told to whoever watches. */
export type Outputs = {
  readonly out: (line: string) => void
  readonly note: (line: string) => void
}

export const standardOutputs: Outputs = {
  out: (line) => void process.stdout.write(`${line}\n`),
  note: (line) => void process.stderr.write(`${line}\n`),
}

/** What Brain has to say of itself while it serves one command. */
export const noteWarnings = ({ note }: Outputs): Logger => ({
  debug: () => {},
  info: () => {},
  warn: (_fields, message) => note(`brain: ${message}`),
  error: (_fields, message) => note(`brain: ${message}`),
})
