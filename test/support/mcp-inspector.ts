import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { CACHE } from '../fixtures/components.ts'

const run = promisify(execFile)
const VERSION = '2.12.0'

/**
 * The command line of the MCP inspector, which takes 111 MB and so is installed for the soak alone.
 * @returns a function that runs it and gives what it printed, parsed
 */
export async function installInspector(): Promise<(...args: readonly string[]) => Promise<any>> {
  const directory = join(CACHE, `mcp-inspector-${VERSION}`)
  await mkdir(directory, { recursive: true })
  const options = ['--no-audit', '--no-fund', '--ignore-scripts']
  await run('npm', ['install', '--prefix', directory, ...options, `@modelcontextprotocol/inspector@${VERSION}`])
  const PATH = [dirname(process.execPath), process.env['PATH']].join(delimiter)
  return async (...args) => {
    // It keeps files of its own at home.
    const env = { PATH, HOME: join(tmpdir(), 'mcp-inspector') }
    const { stdout } = await run(join(directory, 'node_modules/.bin/mcp-inspector'), ['--cli', ...args], { env })
    return JSON.parse(stdout)
  }
}
