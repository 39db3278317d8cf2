import type { Command } from 'commander'
import type { BuildCommandOptions } from '../build.ts'
import type { DevFlags } from '../dev.ts'
import type { NewCommandOptions } from '../new.ts'
import { JSON_LINES, SETTING } from './tool-options.ts'

/** Commands for the sources of tools. Each loads what it needs when it is asked for. */
export function addSourceCommands(program: Command, version: string): void {
  program
    .command('new')
    .description('make a project with one tool, its tests and its cases')
    .argument('<language>', 'rust, python or ts')
    .argument('<name>', 'of the tool and of its folder')
    .option('--packages <directory>', 'a checkout of Brain, whose packages it uses instead of the published ones')
    .option('--json', 'for programs')
    .action(async (language: string, name: string, options: NewCommandOptions) => {
      const { printNew } = await import('../new.ts')
      process.exitCode = await printNew(language, name, options, version)
    })

  program
    .command('build')
    .description('make a component of each tool in a source: Python, Rust or TypeScript')
    .argument('<source>', 'a .py, .ts, .mts, .js or .mjs file, a Cargo.toml, or a folder with one of them')
    .option('--out <directory>', 'where the components go (default: dist)')
    .option('--json', 'for programs')
    .action(async (source: string, options: BuildCommandOptions) => {
      const { printBuild } = await import('../build.ts')
      process.exitCode = await printBuild(process.env, source, options)
    })

  const dev = program
    .command('dev')
    .description('build a tool and run it, and again whenever its sources are saved')
    .argument('<source>', 'as for brain build')
    .option('--tool <name>', 'which one, where the source has several')
  for (const option of SETTING) dev.addOption(option)
  dev.option(...JSON_LINES).action(async (source: string, flags: DevFlags) => {
    const { developTool } = await import('../dev.ts')
    const stop = new AbortController()
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
    await developTool(process.env, source, flags, { signal: stop.signal })
  })
}
