import { mkdtemp, rm } from 'node:fs/promises'
import { statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { buildTools, sourceAt } from '../authoring/build/build-tools.ts'
import { type BuiltTool, QuickBuilds } from '../authoring/build/tool-builder.ts'
import type { LocalBrain } from '../compose/local-brain.ts'
import { BrainError } from '../kernel/errors.ts'
import type { Component } from '../sandbox/sandbox.ts'
import { watchSources } from './dev/watch-sources.ts'
import type { Environment } from './environment.ts'
import { explainFailure } from './explain-failure.ts'
import type { RunFlags } from './run.ts'
import { jsonPrinter, textPrinter } from './tool/call-printer.ts'
import { type Outputs, standardOutputs } from './tool/command-outputs.ts'
import { openBrain } from './tool/open-brain.ts'
import { parseDuration } from './tool/duration.ts'
import { readGrants } from './tool/grants.ts'
import { jsonArgument, readBounded } from './tool/json-argument.ts'
import { localConfig, nameOf, sessionWith, type ToolSetting } from './tool/tool-setting.ts'

export type DevFlags = RunFlags & { readonly tool?: string }

/**
 * Builds a tool and runs it, and again whenever its sources are saved, until `signal` aborts.
 * @throws BrainError, Error when a flag cannot be used or there is no such source; what is wrong with the source is printed
 */
export async function developTool(
  env: Environment,
  source: string,
  flags: DevFlags,
  { signal, outputs = standardOutputs }: { readonly signal: AbortSignal; readonly outputs?: Outputs },
): Promise<void> {
  const { path } = await sourceAt(source)
  const setting = { ...(await readGrants(env, flags)), changes: true }
  if (flags.deadline !== undefined) parseDuration(flags.deadline, '--deadline')
  await using stack = new AsyncDisposableStack()
  const outDirectory = await mkdtemp(join(tmpdir(), 'brain-dev-'))
  stack.defer(() => rm(outDirectory, { recursive: true, force: true }))
  const brain = stack.use(await openBrain(env, await localConfig(env, setting), outputs))
  const folder = statSync(path).isDirectory() ? path : dirname(path)
  const saves = stack.use(watchSources(resolve(folder)))
  const bench: Bench = {
    brain,
    setting,
    flags,
    outputs,
    build: { source, outDirectory, env, quick: new QuickBuilds() },
  }
  while (!signal.aborted) {
    const changed = saves.next()
    // What was saved since makes this round pointless, wherever it is.
    const round = AbortSignal.any([signal, changed.signal])
    await buildAndRun(bench, round).catch((error: unknown) => {
      if (!round.aborted) outputs.note(explainFailure(error))
    })
    if (!round.aborted) outputs.note(`watching ${folder}`)
    void brain.prepare()
    await new Promise<void>((done) => {
      if (round.aborted) done()
      else round.addEventListener('abort', () => done(), { once: true })
    })
  }
}

type Bench = {
  readonly brain: LocalBrain
  readonly setting: ToolSetting
  readonly flags: DevFlags
  readonly outputs: Outputs
  readonly build: {
    readonly source: string
    readonly outDirectory: string
    readonly env: Environment
    readonly quick: QuickBuilds
  }
}

async function buildAndRun({ brain, setting, flags, outputs, build }: Bench, signal: AbortSignal): Promise<void> {
  const began = performance.now()
  const { source, ...options } = build
  const admitted = async (built: readonly BuiltTool[]): Promise<Component> =>
    await brain.admit(await readBounded(chosen(built, flags.tool).component, 'component'))
  const tools = await buildTools(source, {
    ...options,
    signal,
    onProgress: (line) => outputs.note(`  ${line}`),
    onLikely: (likely) => void admitted(likely).catch(() => {}), // said when it is asked for again
  })
  const component = await admitted(tools)
  outputs.note(`built ${nameOf(component)} in ${((performance.now() - began) / 1000).toFixed(1)} s`)
  const input = flags.input === undefined ? {} : await jsonArgument(flags.input, '--input')
  const session = await brain.createSession(sessionWith(component, setting))
  const printer = (flags.json === true ? jsonPrinter : textPrinter)(outputs)
  const called = performance.now()
  try {
    const answer = await brain.call(session, {
      tool: nameOf(component),
      input,
      ...(flags.deadline === undefined ? {} : { deadlineMs: parseDuration(flags.deadline, '--deadline') }),
      signal,
      onItem: (item) => printer.item(item),
    })
    printer.answer(answer, performance.now() - called)
  } finally {
    await brain.endSession(session)
  }
}

function chosen(tools: readonly BuiltTool[], name: string | undefined): BuiltTool {
  const names = tools.map((tool) => tool.name).join(', ')
  const tool = name === undefined ? tools[0] : tools.find((one) => one.name === name)
  if (tool === undefined || (name === undefined && tools.length > 1))
    throw new BrainError('invalid_request', `Cannot choose what to run: say --tool with one of ${names}`)
  return tool
}
