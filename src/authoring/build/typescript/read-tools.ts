import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { clip } from '../../../kernel/errors.ts'
import type { ToolMetadata } from '../../../contract/session-request.ts'
import type { AuthorPackages } from './author-packages.ts'
import { esbuildFailure } from './esbuild-failure.ts'
import { refuseNodeModules } from './node-modules.ts'

/** A tool of a module, by the name of its export. */
export type ExportedTool = { readonly exported: string; readonly metadata: ToolMetadata }

type Answer = {
  readonly tools: readonly ExportedTool[]
  /** Names of tools that something else runs. */
  readonly elsewhere: readonly string[]
}

const LONGEST_MS = 30_000
const MOST_BYTES = 8 * 1024 * 1024
/** What Node exits with when a module waits at its top for what never comes. */
const UNSETTLED = 13

/** Tools know each other by this mark (src/sdk/declare/declared-tool.ts). */
const SCRIPT = (source: string): string => `
import { writeFileSync } from 'node:fs'
import { toolMetadata } from '@aexhq/brain'
import * as module from ${JSON.stringify(source)}
const mark = Symbol.for('@aexhq/brain/tool')
const declared = Object.entries(module).filter(([, value]) => typeof value === 'function' && mark in value)
const seen = new Set()
const own = declared.filter(([, tool]) => tool[mark].run && !seen.has(tool) && seen.add(tool))
const tools = own.map(([exported, tool]) => ({ exported, metadata: toolMetadata(tool) }))
const elsewhere = declared.filter(([, tool]) => !tool[mark].run).map(([exported]) => exported)
writeFileSync(3, JSON.stringify({ tools, elsewhere }))
process.exit(0)`

/**
 * Loads a module in a process of its own, which is told nothing but what it is, and reads what tools it exports.
 *
 * @throws Error saying why it cannot be loaded, or that it exports no tool
 */
export async function readTools(
  packages: AuthorPackages,
  source: string,
  env: Readonly<Record<string, string | undefined>>,
  signal?: AbortSignal,
): Promise<readonly ExportedTool[]> {
  const text = await bundled(packages, source)
  const folder = await mkdtemp(join(tmpdir(), 'brain-build-'))
  try {
    await writeFile(join(folder, 'tools.mjs'), text)
    return checked(await answerOf(join(folder, 'tools.mjs'), env, signal))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function bundled({ esbuild, sdk, nodePaths }: AuthorPackages, source: string): Promise<string> {
  const folder = dirname(source)
  const client = {
    name: 'client',
    setup: (build: { onResolve(to: { filter: RegExp }, find: () => { path: string }): void }) =>
      build.onResolve({ filter: /^@aexhq\/brain$/ }, () => ({ path: sdk })),
  }
  try {
    const { outputFiles } = await esbuild.build({
      stdin: { contents: SCRIPT(source), resolveDir: folder },
      absWorkingDir: folder,
      nodePaths: [...nodePaths],
      bundle: true,
      format: 'esm',
      platform: 'neutral',
      mainFields: ['module', 'main'],
      conditions: ['module', 'import'],
      write: false,
      logLevel: 'silent',
      plugins: [client, refuseNodeModules(['<stdin>'])],
    })
    return outputFiles[0]?.text ?? ''
  } catch (error) {
    throw new Error(esbuildFailure(error, folder), { cause: error })
  }
}

async function answerOf(
  file: string,
  env: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal | undefined,
): Promise<Answer> {
  const child = spawn(process.execPath, [file], {
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    env,
    timeout: LONGEST_MS,
    killSignal: 'SIGKILL',
    ...(signal && { signal }),
  })
  const [answer, said, [code]] = await Promise.all([
    textOf(child.stdio[3] as Readable),
    textOf(child.stderr as Readable),
    once(child, 'close') as Promise<[number | null]>,
  ])
  signal?.throwIfAborted()
  if (code === 0 && answer !== '') return JSON.parse(answer) as Answer
  if (code === UNSETTLED) throw new Error('it waits at its top for a promise that never settles')
  if (code === null) throw new Error(`it was not loaded within ${LONGEST_MS / 1000} s`)
  throw new Error(`it cannot be loaded: ${reasonIn(said)}`)
}

async function textOf(stream: Readable): Promise<string> {
  let text = ''
  for await (const chunk of stream.setEncoding('utf8')) if (text.length < MOST_BYTES) text += String(chunk)
  return text
}

/** Of what Node prints of an error that nobody caught, the line with the error. */
const reasonIn = (said: string): string =>
  clip(/^(?:Uncaught )?([A-Z]\w*(?:Error|Exception)\b.*)$/m.exec(said)?.[1] ?? said.trim(), 500)

function checked({ tools, elsewhere }: Answer): readonly ExportedTool[] {
  if (tools.length === 0) {
    const other =
      elsewhere.length === 0
        ? 'it exports no tool: export one or more, declared with tool({ …, run }) of @aexhq/brain'
        : `its tool ${elsewhere[0]} has an implementation and no run, so there is nothing to build`
    throw new Error(other)
  }
  const names = tools.map(({ metadata }) => metadata.name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new Error(`it exports two tools named "${twice}", which would be one file`)
  return tools
}
