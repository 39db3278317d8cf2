#!/usr/bin/env node
// The process of one packaged tool's call (contract 9.4). Standard output is for frames alone.
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { clip, messageOf } from '../../kernel/errors.ts'
import { frameText } from './process-frames.ts'
import { serveTool } from './serve-tool.ts'
import type { ToolEnd } from './tool-service.ts'

const USAGE = `usage: brain-tool-runtime [DIRECTORY]

Runs one call of a packaged tool. DIRECTORY (default: the current one) holds node_modules with the package, or is the
package. Reads the call and then answers from standard input, one JSON frame a line; writes what the tool asks and how it
ended to standard output; what the tool prints goes to standard error. SIGTERM and the end of standard input cancel.

exit codes: 0 the end of the call was written, 2 standard input is wrong, 64 so are the arguments
`

/** How long a function may take to clean up after it was told to stop. */
const GRACE_MS = 5000

const frames = process.stdout.write.bind(process.stdout)
process.stdout.write = process.stderr.write.bind(process.stderr)

const stop = new AbortController()
let isOver = false
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort())
process.once('uncaughtException', (error) =>
  last({ type: 'failure', code: 'tool_error', message: clip(messageOf(error)), retryable: false }, false),
)

/** Writes the last frame and leaves: at once, or when what is still at work has ended or had its time. */
function last(end: ToolEnd, mayLinger: boolean): void {
  if (isOver) return
  isOver = true
  frames(frameText(end), () => {
    process.stdin.destroy()
    if (mayLinger) setTimeout(() => process.exit(0), GRACE_MS).unref()
    else process.exit(0)
  })
}

function leave(code: number, message: string): void {
  process.stderr.write(message, () => process.exit(code))
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { help: { type: 'boolean', short: 'h' } },
    allowPositionals: true,
  })
  if (values.help === true) return leave(0, USAGE)
  const [directory = '.', more] = positionals
  if (more !== undefined) return leave(64, `Cannot start brain-tool-runtime: one directory is enough\n\n${USAGE}`)
  const toolSource = resolve(directory)
  try {
    const end = await serveTool({ toolSource, lines: process.stdin, write: frames, signal: stop.signal })
    const wasStopped = end.type === 'failure' && (end.code === 'cancelled' || end.code === 'timeout')
    last(end, wasStopped)
  } catch (error) {
    leave(2, `${messageOf(error)}\n`)
  }
}

await main().catch((error: unknown) => leave(64, `Cannot start brain-tool-runtime: ${messageOf(error)}\n\n${USAGE}`))
