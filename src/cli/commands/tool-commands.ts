import type { Command } from 'commander'
import type { InspectFlags } from '../inspect.ts'
import type { RunFlags } from '../run.ts'
import type { TestFlags } from '../test.ts'
import { GRANTS, JSON_LINES, SETTING } from './tool-options.ts'

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
    .option('--schema <provider>', 'print the tool as openai, anthropic or mcp takes it, and nothing else')
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
