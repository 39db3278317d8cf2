#!/usr/bin/env node
// The command that authors run after their package's build.
import { parseArgs } from 'node:util'
import { messageOf } from '../../kernel/errors.ts'
import { packageTools, type PackagedTools } from './package-tools.ts'

const USAGE = `usage: brain-tools [--check | --dry-run] [--json] [DIRECTORY]

Makes what applications import of the package in DIRECTORY (default: the current one), from its tools, after its own build.

  --dry-run  write nothing, say what would be written
  --check    the same, and exit 1 unless all of it is there already
  --json     say it for programs

exit codes: 0 done, 1 refused or not current, 64 wrong arguments
`

function told({ package: name, version, tools, files }: PackagedTools, verb: string): string {
  const lines = tools.map(({ name: tool, entry, export: exported }) => `${tool}: "${exported}" of "${entry}"`)
  const done = files.map(({ path, state }) => `${state === 'written' ? verb : state} ${path}`)
  return `${[`${name}@${version}`, ...lines, ...done].join('\n')}\n`
}

const options = {
  check: { type: 'boolean' },
  'dry-run': { type: 'boolean' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

async function main(): Promise<number> {
  let given: ReturnType<typeof parsed>
  try {
    given = parsed()
  } catch (error) {
    process.stderr.write(`Cannot start brain-tools: ${messageOf(error)}\n\n${USAGE}`)
    return 64
  }
  const { values, directory } = given
  if (values.help === true) {
    process.stdout.write(USAGE)
    return 0
  }
  const dryRun = values.check === true || values['dry-run'] === true
  try {
    const made = await packageTools(directory, { dryRun })
    const isCurrent = made.files.every(({ state }) => state === 'unchanged')
    process.stdout.write(
      values.json === true ? `${JSON.stringify(made)}\n` : told(made, dryRun ? 'would write' : 'wrote'),
    )
    return values.check === true && !isCurrent ? 1 : 0
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`)
    return 1
  }
}

function parsed() {
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  if (positionals.length > 1) throw new Error('one directory is enough')
  return { values, directory: positionals[0] }
}

const code = await main()
// Modules with tools may have opened what keeps a process alive.
process.stdout.write('', () => process.exit(code))
