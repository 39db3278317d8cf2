#!/usr/bin/env node
import { rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import { printable, printableLines } from './printable.ts'
import { openProgress, type Progress } from './progress.ts'
import { DemoFailure, demoPaths, runDemo } from './demo/run-demo.ts'
import { startServer, type ServerProcess } from './demo/server-process.ts'

type Options = { readonly keep: boolean; readonly python: boolean; readonly pythonCache?: string }

const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const
const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** What must be gone when the demo is over, whatever ends it. */
type Leftovers = { directory: string | undefined; server: ServerProcess | undefined }

/** Runs the demo. @returns the exit code */
async function demo(options: Options): Promise<number> {
  const began = performance.now()
  const left: Leftovers = { directory: undefined, server: undefined }
  const progress = openProgress(process.stdout)
  const interruption = new AbortController()
  let signalCode: number | undefined
  for (const [name, code] of Object.entries(SIGNALS))
    process.on(name, () => {
      if (signalCode !== undefined) process.exit(code) // asked twice: not in order, but at once
      signalCode = code
      interruption.abort(new DemoFailure(`Stopped by ${name}`))
    })
  // For the ends that do not come back here: a second signal, a defect of ours.
  process.once('exit', () => removeNow(left))
  try {
    await show(options, { left, progress, signal: interruption.signal })
    say(`\nThe demo took ${((performance.now() - began) / 1000).toFixed(1)} s`)
    if (!options.keep) return 0
    return keep(left)
  } catch (error) {
    progress.stop()
    process.stderr.write(`${explain(interruption.signal.aborted ? interruption.signal.reason : error)}\n`)
    return signalCode ?? 1
  } finally {
    await removeInOrder(left)
  }
}

type Stage = { readonly left: Leftovers; readonly progress: Progress; readonly signal: AbortSignal }

async function show({ python, pythonCache }: Options, { left, progress, signal }: Stage): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'brain-demo-'))
  left.directory = directory
  const { data: dataDirectory, log: logFile } = demoPaths(directory)
  progress.step('Starting a server')
  const settings = { BRAIN_ENV_FILESYSTEM_ALLOW: 'workspace' }
  const server = await startServer({ dataDirectory, logFile, settings, signal })
  left.server = server
  progress.done(server.url)
  const lost = server.ended.then((how) => {
    throw new DemoFailure(`The server ended with ${how}; its log is ${logFile}`)
  })
  const shown = runDemo({ url: server.url, directory, pythonCache, withPython: python, progress, say, signal })
  try {
    await Promise.race([shown, lost])
  } finally {
    lost.catch(() => undefined)
    shown.catch(() => undefined)
  }
}

/** Leaves the server and its data; says how to use and to end them. */
function keep(left: Leftovers): number {
  const { directory = '', server } = left
  server?.release()
  left.server = undefined
  left.directory = undefined
  say(`\nThe server is left up at ${server?.url}, process ${server?.pid}`)
  say(`Its data is in ${demoPaths(directory).data}, its log is ${demoPaths(directory).log}`)
  say(`To end it: kill ${server?.pid} && rm -r ${directory}`)
  return 0
}

async function removeInOrder(left: Leftovers): Promise<void> {
  const { server, directory } = left
  await server?.stop()
  left.server = undefined
  if (directory !== undefined) await rm(directory, { recursive: true, force: true, maxRetries: 5 })
  left.directory = undefined
}

function removeNow({ server, directory }: Leftovers): void {
  server?.kill()
  if (directory !== undefined) rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
}

/** What cannot be shown, in words; a defect keeps its stack. Nothing of it moves the terminal. */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return printable(String(error))
  const isExpected = error instanceof DemoFailure || error.message.startsWith('Cannot ')
  return printableLines(isExpected ? error.message : (error.stack ?? error.message)).join('\n')
}

const program = new Command('demo')
  .description('starts a server, runs one turn that calls untrusted tools, and prints its journal as it is written')
  .option('--keep', 'leave the server up and print its URL and data directory', false)
  .option('--no-python', 'leave the Python tool out, also where it could be built')
  .option('--python-cache <directory>', 'where the compiler of Python tools is installed and kept')
  .action(async (options: Options) => process.exit(await demo(options)))
await program.parseAsync()
