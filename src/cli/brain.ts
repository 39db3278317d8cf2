#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { type ArchiveOptions, printBackup } from './archive/backup.ts'
import { type ExportOptions, type ImportCommandOptions, printExport, printImport } from './archive/transfer.ts'
import { printAudit } from './audit.ts'
import type { BuildCommandOptions } from './build.ts'
import { doctor, type DoctorOptions } from './doctor.ts'
import { readConfig } from '../compose/read-config.ts'
import type { McpOptions } from './mcp.ts'
import type { NewCommandOptions } from './new.ts'
import { explainFailure, serve, type Environment } from './serve.ts'

// As far above this file in a checkout as in the published package.
const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** `-config FILE` and `-check`, as some are used to write them (contract A1). */
const withLongOptions = (argv: readonly string[]): string[] =>
  argv.map((argument) => (argument === '-config' || argument === '-check' ? `-${argument}` : argument))

const program = new Command('brain')
  .description('A host for tools that nobody should have to trust')
  .version(version)
  .showHelpAfterError()

program
  .command('serve', { isDefault: true })
  .description('run the server; it is configured by environment variables, see docs/configuration.md')
  .option('--listen <host:port>', 'address to listen on (BRAIN_LISTEN)')
  .option('--data-dir <directory>', 'where sessions, components and workspaces are kept (BRAIN_DATA_DIR)')
  .option('--config <file>', 'the host config: tenants and distributed tools, see docs/distributed-tools.md')
  .option('--check', 'check the configuration, print every problem, serve nothing')
  .action(async (options: { listen?: string; dataDir?: string; config?: string; check?: boolean }) => {
    const env: Environment = {
      ...process.env,
      ...(options.listen === undefined ? {} : { BRAIN_LISTEN: options.listen }),
      ...(options.dataDir === undefined ? {} : { BRAIN_DATA_DIR: options.dataDir }),
    }
    if (options.check !== true) return serve(env, options.config)
    await readConfig(env, options.config)
    process.stdout.write('the configuration is valid\n')
    return undefined
  })

program
  .command('doctor')
  .description('say which sandbox level this machine offers, what is missing, and how to get it')
  .option('--data-dir <directory>', 'the data directory to look at (BRAIN_DATA_DIR)')
  .option('--json', 'for programs')
  .action(async (options: DoctorOptions) => {
    process.exitCode = await doctor(process.env, options)
  })

program
  .command('audit')
  .description('attack real boxes of every level that this machine offers, and say what was denied')
  .option('--json', 'for programs')
  .action(async (options: { json?: boolean }) => {
    process.exitCode = await printAudit(process.env, options)
  })

program
  .command('build')
  .description('make a component of each tool in a source: Python, Rust or TypeScript')
  .argument('<source>', 'a .py, .ts, .mts, .js or .mjs file, a Cargo.toml, or a folder with one of them')
  .option('--out <directory>', 'where the components go (default: dist)')
  .option('--json', 'for programs')
  .action(async (source: string, options: BuildCommandOptions) => {
    const { printBuild } = await import('./build.ts')
    process.exitCode = await printBuild(process.env, source, options)
  })

program
  .command('new')
  .description('make a project with one tool, its tests and its cases')
  .argument('<language>', 'rust, python or ts')
  .argument('<name>', 'of the tool and of its folder')
  .option('--packages <directory>', 'a checkout of Brain, whose packages it uses instead of the published ones')
  .option('--json', 'for programs')
  .action(async (language: string, name: string, options: NewCommandOptions) => {
    const { printNew } = await import('./new.ts')
    process.exitCode = await printNew(language, name, options, version)
  })

const dataDirOption = ['--data-dir <directory>', 'the data directory of the server (BRAIN_DATA_DIR)'] as const

program
  .command('backup')
  .description('copy the data directory of a server, which may be running, to a new directory, and check the copy')
  .argument('<directory>', 'where the backup is made; it must not be there')
  .option(...dataDirOption)
  .option('--json', 'for programs')
  .action((directory: string, options: ArchiveOptions) => printBackup(process.env, directory, options))

program
  .command('export')
  .description('print a session as JSON lines: its records, no credentials and no files; its server may be running')
  .argument('<session>', 'the id of the session')
  .option(...dataDirOption)
  .option('--out <file>', 'write to this file, which must not be there')
  .action((session: string, options: ExportOptions) => printExport(process.env, session, options))

program
  .command('import')
  .description('put an exported session into a data directory that no server uses')
  .argument('<file>', 'the exported session; - for standard input')
  .option(...dataDirOption)
  .option('--api-key-env <variable>', "the variable that holds the key of the session's model")
  .option('--json', 'for programs')
  .action((file: string, options: ImportCommandOptions) => printImport(process.env, file, options))

program
  .command('mcp')
  .description('offer the tools of a session to an MCP client on standard input and output (token: BRAIN_API_TOKEN)')
  .requiredOption('--session <session>', 'the id of the session')
  .option('--url <url>', 'the running server', 'http://127.0.0.1:8080')
  .action(async (options: McpOptions) => {
    // Loaded when it is asked for: the other commands have no use for the SDK.
    const { bridgeMcp } = await import('./mcp.ts')
    await bridgeMcp(process.env, options)
  })

try {
  await program.parseAsync(withLongOptions(process.argv))
  process.exit()
} catch (error) {
  process.stderr.write(`${explainFailure(error)}\n`)
  process.exit(1)
}
