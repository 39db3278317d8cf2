import type { Command } from 'commander'
import type { BuildCommandOptions } from '../build.ts'
import type { NewCommandOptions } from '../new.ts'

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
}
