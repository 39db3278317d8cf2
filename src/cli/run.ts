import type { LocalBrain } from '../compose/local-brain.ts'
import type { Environment } from './environment.ts'
import { type CallPrinter, jsonPrinter, textPrinter } from './tool/call-printer.ts'
import { type Outputs, standardOutputs } from './tool/command-outputs.ts'
import { openBrain } from './tool/open-brain.ts'
import { parseDuration } from './tool/duration.ts'
import { EXIT_CODES } from './tool/exit-codes.ts'
import { type GrantFlags, readGrants } from './tool/grants.ts'
import { jsonArgument, readBounded } from './tool/json-argument.ts'
import { localConfig, nameOf, sessionWith } from './tool/tool-setting.ts'

export type RunFlags = GrantFlags & {
  readonly input?: string
  readonly deadline?: string
  readonly json?: boolean
}

/**
 * Runs a component once, in the box that a server would run it in, and prints what it does.
 * @returns the exit code: {@link EXIT_CODES}
 * @throws BrainError when it cannot be run: a flag, the component, or the machine
 */
export async function runTool(
  env: Environment,
  file: string,
  flags: RunFlags,
  outputs: Outputs = standardOutputs,
): Promise<number> {
  const setting = await readGrants(env, flags)
  const config = await localConfig(env, setting)
  const deadlineMs = flags.deadline === undefined ? undefined : parseDuration(flags.deadline, '--deadline')
  const input = flags.input === undefined ? {} : await jsonArgument(flags.input, '--input')
  const bytes = await readBounded(file, 'component', config.limits.packageBytes)
  const printer = (flags.json === true ? jsonPrinter : textPrinter)(outputs)
  await using brain = await openBrain(env, config, outputs)
  const component = await brain.admit(bytes)
  const session = await brain.createSession(sessionWith(component, setting))
  return await callAndPrint(printer, (shown) =>
    brain.call(session, {
      tool: nameOf(component),
      input,
      ...(deadlineMs === undefined ? {} : { deadlineMs }),
      ...shown,
    }),
  )
}

type Shown = Pick<Parameters<LocalBrain['call']>[1], 'signal' | 'onItem'>

/** Ctrl-C cancels the call, whose end is printed like any other. */
async function callAndPrint(
  printer: CallPrinter,
  call: (shown: Shown) => ReturnType<LocalBrain['call']>,
): Promise<number> {
  const cancel = new AbortController()
  const onSignal = (): void => cancel.abort()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, onSignal)
  const began = performance.now()
  try {
    const answer = await call({ signal: cancel.signal, onItem: (item) => printer.item(item) })
    printer.answer(answer, performance.now() - began)
    return EXIT_CODES[answer.outcome.status]
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, onSignal)
  }
}
