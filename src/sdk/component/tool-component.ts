import * as host from 'brain:tool/host'
import { refreshGlobals } from './install-globals.ts'
import { ERRORS, messageOf } from '../../kernel/errors.ts'
import type { Json } from '../../kernel/json.ts'
import type { ModelResult } from '../../contract/message.ts'
import { errorOutcome, type ToolOutput } from '../../contract/outcome.ts'
import { BrainError } from '../brain-error.ts'
import { parseOptions } from '../declare/parse-options.ts'
import type { CallServices } from '../host/call-services.ts'
import { Execution } from '../host/execution.ts'
import type { AnyToolFunction, ToolContext } from '../host/tool-context.ts'
import { runUntil } from './event-loop.ts'
import { log } from './guest-console.ts'
import { takeUnhandled } from './guest-promise.ts'
import { guestToolOf } from './guest-tool.ts'
import { startCall } from './phase.ts'

/** What the host calls the export `run` with. */
export type GuestInvocation = {
  readonly inputJson: string
  readonly configurationJson: string
  /** 0: never. */
  readonly deadlineAtMs: number | bigint
}

/**
 * Makes a tool that was declared with `run` the export of the world `brain:tool`: `export const run = toolComponent(lookup)`.
 * `brain build` writes this; it loads in a component only.
 *
 * @throws TypeError for what is no tool, and for one without `run`
 */
export function toolComponent(factory: unknown): (invocation: GuestInvocation) => string {
  const { name, run, input, output, options: schema } = guestToolOf(factory) ?? {}
  if (run === undefined || input === undefined)
    throw new TypeError('Cannot make a component: it needs a tool that was declared with run')
  return ({ inputJson, configurationJson, deadlineAtMs }) => {
    startCall()
    refreshGlobals()
    const call = new GuestCall()
    call.run(() => {
      const given = JSON.parse(configurationJson) as Readonly<Record<string, unknown>>
      const options = parseOptions(given, schema, `Cannot place tool "${name}"`)
      const runHere: AnyToolFunction = async (parsed, ctx) => {
        try {
          return await run(parsed, guestContext(ctx, Number(deadlineAtMs)) as never)
        } catch (error) {
          log('error', error)
          throw error
        }
      }
      const executable = { type: 'function', run: runHere, input, output, options } as const
      return new Execution(
        { session_id: '', sequence: 0, input: JSON.parse(inputJson) as Json },
        executable,
        call.services,
        () => call.close(),
      ).run()
    })
    return ''
  }
}

/** One call: an instance has no other. */
class GuestCall {
  #isOver = false
  readonly services: CallServices = {
    emit: (kind, data) => ask(() => host.emit(kind, JSON.stringify(data))),
    result: (outcome) => ask(() => host.emitResult(JSON.stringify(outcome))),
    returned: (outcome) => ask(() => void host.returned(textOf(outcome))),
    finish: (outcome) => ask(() => void host.finish(textOf(outcome))),
    fail: (outcome) => ask(() => void host.finish(textOf(outcome))),
    model: (request) => ask(() => JSON.parse(host.model(JSON.stringify(request))) as ModelResult),
    environments: (request) => ask(() => JSON.parse(host.environments(JSON.stringify(request))) as Json),
  }

  close(): void {
    this.#isOver = true
  }

  /** Stays with the call until its function is done and the call has an end, or there is nothing to wait for. */
  run(work: () => Promise<void>): void {
    let isDone = false
    const done = (): void => void (isDone = true)
    const fail = (error: unknown): void => {
      done()
      host.finish(textOf(errorOutcome('tool_error', messageOf(error))))
    }
    try {
      work().then(done, fail)
    } catch (error) {
      return fail(error)
    }
    const isSettled = runUntil(
      () => isDone && this.#isOver,
      (error) => log('error', 'Nobody caught', error),
    )
    for (const reason of takeUnhandled()) log('error', 'Nobody caught', reason)
    if (isSettled || isDone || this.#isOver) return
    const never = 'The tool waits for a promise that nothing will settle: no timer is set and no request is open'
    host.finish(textOf(errorOutcome('tool_error', never)))
  }
}

const textOf = (outcome: ToolOutput | undefined): string | null =>
  outcome === undefined ? null : JSON.stringify(outcome)

/** What the host answers, it answers at once; what it refuses leaves the call open. */
async function ask<Answer>(work: () => Answer): Promise<Answer> {
  try {
    return work()
  } catch (error) {
    const payload = (error as { payload?: { code: string; message: string } } | null)?.payload
    if (payload === undefined) throw error
    const { code, message } = payload
    const retryable = (ERRORS as Readonly<Record<string, { retryable: boolean }>>)[code]?.retryable === true
    throw new BrainError(400, code, message, { retryable })
  }
}

/** The context of an application's call, with what a component is told and without what it is not. */
function guestContext(given: ToolContext, deadlineAtMs: number): ToolContext {
  const untold = (member: string): PropertyDescriptor => ({
    get() {
      throw new BrainError(0, 'unsupported', `Cannot read ctx.${member}: a component is not told which call it serves`)
    },
  })
  const { sessionId: _, sequence: __, ...told } = given
  const deadline = deadlineAtMs === 0 ? undefined : new Date(deadlineAtMs)
  const telemetry = (record: unknown): void => host.telemetry(JSON.stringify(record) ?? 'null')
  const context = { ...told, deadline, telemetry }
  return Object.freeze(
    Object.defineProperties(context, { sessionId: untold('sessionId'), sequence: untold('sequence') }),
  ) as unknown as ToolContext
}
