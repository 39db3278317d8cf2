// `npm run bench [-- names…] [--json]`: measures this checkout on this machine. docs/bench.md says what each figure is.
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { openProgress, type Progress } from '../src/cli/progress.ts'
import { pythonCache, pythonTool, rustTool } from '../src/cli/demo/tools.ts'
import { BenchServer } from './bench-server.ts'
import { type Figure, toFigure } from './figure.ts'
import { chosenFigures, FIGURES, type GroupName } from './figures.ts'
import { admission } from './groups/admission.ts'
import { boxes } from './groups/boxes.ts'
import { calls } from './groups/calls.ts'
import { commands } from './groups/commands.ts'
import { deadlines } from './groups/deadlines.ts'
import { files } from './groups/files.ts'
import { floors } from './groups/floors.ts'
import { application } from './groups/application.ts'
import { history } from './groups/history.ts'
import { guest } from './groups/guest.ts'
import { memory } from './groups/memory.ts'
import { services } from './groups/services.ts'
import { records } from './groups/records.ts'
import { streams } from './groups/streams.ts'
import { throughput } from './groups/throughput.ts'
import { turns } from './groups/turns.ts'
import { printFigure, printMachine, verdictsOf } from './print.ts'
import type { Group, Samples, Subjects } from './run.ts'

type Options = { readonly json: boolean; readonly runs: string; readonly check: boolean; readonly directory?: string }

const GROUPS: Readonly<Record<GroupName, Group>> = {
  floors,
  admission,
  boxes,
  calls,
  application,
  services,
  guest,
  files,
  turns,
  records,
  streams,
  history,
  throughput,
  deadlines,
  memory,
  commands,
}
const PYTHON_WORDCOUNT = fileURLToPath(new URL('../test/fixtures/guests-python/wordcount', import.meta.url))

async function bench(names: readonly string[], options: Options): Promise<number> {
  const chosen = chosenFigures(names)
  const progress = openProgress(process.stderr)
  const subjects = await prepare(progress)
  const groups = (Object.keys(GROUPS) as GroupName[]).filter((group) =>
    chosen.some((name) => FIGURES[name]?.group === group),
  )
  const runs: Samples[] = []
  for (let run = 1; run <= Number(options.runs); run++) {
    progress.step(`Run ${run} of ${options.runs}`)
    runs.push(await oneRun(groups, { subjects, progress, directory: options.directory }))
    progress.done()
  }
  const figures = chosen.flatMap((name) => figureOf(name, runs) ?? [])
  return report(figures, options)
}

async function prepare(progress: Progress): Promise<Subjects> {
  progress.step('Building the Python tool')
  const python = await pythonTool(PYTHON_WORDCOUNT, {
    cacheDirectory: await pythonCache(''),
    onProgress: (line) => progress.detail(line),
  })
  progress.done('bytes' in python ? 'ready' : `left out: ${python.reason}`)
  return {
    wordcount: await rustTool('wordcount'),
    files: await rustTool('files'),
    inspect: await rustTool('inspect'),
    slow: await rustTool('slow'),
    python: 'bytes' in python ? python.bytes : undefined,
  }
}

type RunSettings = {
  readonly subjects: Subjects
  readonly progress: Progress
  readonly directory: string | undefined
}

/** All groups once, one after another, on a server of their own: what disturbs one run disturbs every figure of it. */
async function oneRun(groups: readonly GroupName[], settings: RunSettings): Promise<Samples> {
  const { subjects, progress, directory } = settings
  await using server = await BenchServer.start(directory)
  let samples: Samples = {}
  for (const name of groups) {
    progress.detail(name)
    samples = { ...samples, ...(await GROUPS[name]({ server, subjects })) }
  }
  return samples
}

/** Nothing where no run could measure it. */
function figureOf(name: string, runs: readonly Samples[]): Figure | undefined {
  const facts = FIGURES[name]
  const samples = runs.flatMap((run) => (run[name] === undefined ? [] : [run[name]]))
  if (facts === undefined || samples.length !== runs.length) return undefined
  const { unit, floor } = facts
  return toFigure({
    name,
    unit,
    runs: samples,
    floor: floor === undefined ? undefined : runs.map((run) => run[floor] ?? []),
  })
}

/** `--json` prints figures alone on standard output; whether they are as required goes to standard error then. */
function report(figures: readonly Figure[], { json, check, runs }: Options): number {
  if (!json) printMachine(Number(runs))
  const verdicts = figures.map((figure) => verdictsOf(figure, figures))
  for (const [index, figure] of figures.entries()) {
    const required = verdicts[index] ?? []
    process.stdout.write(`${json ? JSON.stringify(figure) : printFigure(figure, required)}\n`)
    if (json) for (const { text } of required) process.stderr.write(`${figure.name}: ${text}\n`)
  }
  const missed = verdicts.flat().filter(({ isMet }) => !isMet).length
  return check && missed > 0 ? 1 : 0
}

const program = new Command('bench')
  .description('measures this checkout on this machine')
  .argument('[names...]', 'figures to measure; all of them when none is named')
  .option('--json', 'one object a line on standard output', false)
  .option('--check', 'exit 1 when a required value is not met', false)
  .option('--runs <count>', 'runs, of which figures are the median', '5')
  .option('--directory <path>', 'where the servers keep their data (default: the system temporary directory)')
  .action(async (names: string[], options: Options) => {
    process.exitCode = await bench(names, options)
  })
try {
  await program.parseAsync()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
