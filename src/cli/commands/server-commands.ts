import type { Command } from 'commander'
import type { ArchiveOptions } from '../archive/backup.ts'
import type { ExportOptions, ImportCommandOptions } from '../archive/transfer.ts'
import type { DoctorOptions } from '../doctor.ts'
import type { Environment } from '../environment.ts'
import type { McpOptions } from '../mcp.ts'
import { urlOption } from './url-option.ts'

const dataDirOption = ['--data-dir <directory>', 'the data directory of the server (BRAIN_DATA_DIR)'] as const

/** Commands of a server, for operators. Each loads what it needs when it is asked for. */
export function addServerCommands(program: Command): void {
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
      if (options.check !== true) {
        const { serve } = await import('../serve.ts')
        return serve(env, options.config)
      }
      const { readConfig } = await import('../../compose/read-config.ts')
      const { warnings } = await readConfig(env, options.config)
      for (const warning of warnings) process.stderr.write(`${warning}\n`)
      process.stdout.write('the configuration is valid\n')
      return undefined
    })

  program
    .command('doctor')
    .description('say which sandbox level this machine offers, what is missing, and how to get it')
    .option('--data-dir <directory>', 'the data directory to look at (BRAIN_DATA_DIR)')
    .option('--json', 'for programs')
    .action(async (options: DoctorOptions) => {
      const { doctor } = await import('../doctor.ts')
      process.exitCode = await doctor(process.env, options)
    })

  program
    .command('audit')
    .description('attack real boxes of every level that this machine offers, and say what was denied')
    .option('--json', 'for programs')
    .action(async (options: { json?: boolean }) => {
      const { printAudit } = await import('../audit.ts')
      process.exitCode = await printAudit(process.env, options)
    })

  program
    .command('mcp')
    .description('offer the tools of a session to an MCP client on standard input and output (token: BRAIN_API_TOKEN)')
    .requiredOption('--session <session>', 'the id of the session')
    .addOption(urlOption())
    .action(async (options: McpOptions) => {
      const { bridgeMcp } = await import('../mcp.ts')
      await bridgeMcp(process.env, options)
    })
}

/** Commands for what a server keeps. */
export function addArchiveCommands(program: Command): void {
  program
    .command('backup')
    .description('copy the data directory of a server, which may be running, to a new directory, and check the copy')
    .argument('<directory>', 'where the backup is made; it must not be there')
    .option(...dataDirOption)
    .option('--json', 'for programs')
    .action(async (directory: string, options: ArchiveOptions) => {
      const { printBackup } = await import('../archive/backup.ts')
      await printBackup(process.env, directory, options)
    })

  program
    .command('export')
    .description('print a session as JSON lines: its records, no credentials and no files; its server may be running')
    .argument('<session>', 'the id of the session')
    .option(...dataDirOption)
    .option('--out <file>', 'write to this file, which must not be there')
    .action(async (session: string, options: ExportOptions) => {
      const { printExport } = await import('../archive/transfer.ts')
      await printExport(process.env, session, options)
    })

  program
    .command('import')
    .description('put an exported session into a data directory that no server uses')
    .argument('<file>', 'the exported session; - for standard input')
    .option(...dataDirOption)
    .option('--api-key-env <variable>', "the variable that holds the key of the session's model")
    .option('--json', 'for programs')
    .action(async (file: string, options: ImportCommandOptions) => {
      const { printImport } = await import('../archive/transfer.ts')
      await printImport(process.env, file, options)
    })
}
