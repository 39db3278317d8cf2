#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { addArchiveCommands, addServerCommands } from './commands/server-commands.ts'
import { addSessionCommands } from './commands/session-commands.ts'
import { addSourceCommands } from './commands/source-commands.ts'
import { addToolCommands } from './commands/tool-commands.ts'
import { explainFailure } from './explain-failure.ts'
import { keepCompiled } from './keep-compiled.ts'

keepCompiled(process.env)

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
addServerCommands(program)
addArchiveCommands(program)
addToolCommands(program)
addSourceCommands(program, version)
addSessionCommands(program)

try {
  await program.parseAsync(withLongOptions(process.argv))
  process.exit()
} catch (error) {
  process.stderr.write(`${explainFailure(error)}\n`)
  process.exit(1)
}
