import { type Command, Option } from 'commander'
import type { InspectFlags } from '../inspect.ts'
import type { RunFlags } from '../run.ts'
import type { TestFlags } from '../test.ts'

const collect = (value: string, all: readonly string[] = []): readonly string[] => [...all, value]

/** What a tool is given, and what it is called with. */
const GRANTS = [
  new Option(
    '--secret <name>',
    'give it the value of this variable as the file /secrets/NAME; may be repeated',
  ).argParser(collect),
  new Option('--net <origin>', 'let it reach this origin, such as https://api.example; may be repeated').argParser(
    collect,
  ),
]
const SETTING = [
  new Option('--input <json>', 'the input: JSON, @FILE, or - for standard input; default {}'),
  new Option('--options <json>', 'the options that the tool is placed with: JSON, @FILE or -; default {}'),
  new Option('--workspace <directory>', 'give it this directory as /workspace; DIRECTORY:ro for reading only'),
  new Option('--scratch', 'give it a directory of its own as /scratch'),
  ...GRANTS,
  new Option('--deadline <duration>', 'stop it then: 250ms, 5s, 2m; default: BRAIN_MAX_TOOL_SECS'),
  new Option('--model <model>', 'the model that it may call: scripted:@FILE, or PROVIDER:NAME'),
  new Option('--api-key-env <variable>', 'the variable that holds the key of the model'),
]
const JSON_LINES = ['--json', 'for programs: a line of JSON each'] as const

/** Commands for authors of tools. Each loads what it needs when it is asked for. */
export function addToolCommands(program: Command): void {
  const run = program
    .command('run')
    .description('run a component once in the box that a server would run it in, and print what it does')
    .argument('<file>', 'the component, a .wasm file')
  for (const option of SETTING) run.addOption(option)
  run.option(...JSON_LINES).action(async (file: string, flags: RunFlags) => {
    const { runTool } = await import('../run.ts')
    process.exitCode = await runTool(process.env, file, flags)
  })

  program
    .command('inspect')
    .description('say what a component is, what it may be given, and whether a server would admit it')
    .argument('<file>', 'the component, a .wasm file')
    .option(...JSON_LINES)
    .action(async (file: string, flags: InspectFlags) => {
      const { inspectComponent } = await import('../inspect.ts')
      process.exitCode = await inspectComponent(process.env, file, flags)
    })

  const test = program
    .command('test')
    .description('run the cases of a tool: what it is called with, and what must come of it')
    .argument('<file>', 'the component, a .wasm file')
    .option('--cases <file>', 'the cases, JSON or YAML; default: cases.json or cases.yaml beside the component')
  for (const option of GRANTS) test.addOption(option)
  test.option(...JSON_LINES).action(async (file: string, flags: TestFlags) => {
    const { testTool } = await import('../test.ts')
    process.exitCode = await testTool(process.env, file, flags)
  })
}
