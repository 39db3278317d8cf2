import type { z } from 'zod'
import type { Json } from '../../kernel/json.ts'
import type { EnvironmentMethods, EnvironmentRef } from '../../contract/environment.ts'
import type { EnvironmentResponse } from '../../contract/environment-protocol.ts'
import type { MethodDeclaration } from '../declare/environment-methods.ts'
import type { OptionsOf, OptionsSchema } from '../declare/placement.ts'
import type { EnvironmentServices } from '../host/environment-services.ts'
import type { ExecutionServices } from './execution-services.ts'
import type { Observer, Reporter } from './observations.ts'

/**
 * What a handler knows of the operation that it does. `emit`, `observe` and `environments` are the controller's own, within
 * what its environment was granted, and end with the operation; `reporter` goes on.
 */
export interface OperationContext<Options = unknown> extends Observer {
  /** The configuration as the schema `options` has parsed it, frozen; `{}` without one. */
  readonly options: Options
  /** The configuration as it came; null for none. */
  readonly configuration: Json
  readonly sessionId: string
  /** The environment that the operation is about, as `environments` refers to it. */
  readonly environment: EnvironmentRef
  /** Of an environment that was made while the session goes on: the name of the declared one it was made from. */
  readonly template: string | undefined
  /** Of this operation: with session and environment it names it, whoever delivers it again. */
  readonly sequence: number
  /** When nobody waits for it any more; undefined when nothing says so. */
  readonly deadline: Date | undefined
  /** Aborts at the deadline, when the operation is cancelled, and when the signal of `run` does. */
  readonly signal: AbortSignal
  readonly environments: EnvironmentServices
  readonly reporter: Reporter
}

/** {@link OperationContext} of a tool or agentloop that runs here. Its signal and its `execution` outlive the answer. */
export interface ExecuteContext<Options = unknown> extends OperationContext<Options> {
  /** What the tool or loop itself may ask, in whose name it is on record. */
  readonly execution: ExecutionServices
}

/** What is to be run: `implementation` as it was declared, whatever that means here. */
export type ExecuteRequest = { readonly implementation: Json; readonly input: Json }

/** What setting up may answer: a declared method that Brain calls after every turn. */
export type SetupAnswer = { readonly onTurnEnd?: string }

/** Methods with what they do, by name: `input` is parsed before `run`, what it gives is checked against `output`. */
export type MethodHandlers<Inputs extends Readonly<Record<string, z.ZodType>>, Options> = {
  readonly [Name in keyof Inputs]: Omit<MethodDeclaration, 'input'> & {
    readonly input: Inputs[Name]
    /** What it gives is checked against `output`. */
    readonly run: (input: z.output<Inputs[Name]>, ctx: OperationContext<Options>) => unknown
  }
}

/** What an environment does, for `environmentHandler`. What is left out of setup, detach and teardown needs nothing done. */
export type EnvironmentContract<
  Options extends OptionsSchema | undefined,
  Inputs extends Readonly<Record<string, z.ZodType>>,
> = {
  /** What configurations must be; everything is taken when absent. */
  readonly options?: Options
  readonly methods?: MethodHandlers<Inputs, OptionsOf<Options>>
  /** Makes it ready. */
  readonly setup?: (ctx: OperationContext<OptionsOf<Options>>) => SetupAnswer | void | Promise<SetupAnswer | void>
  /**
   * Runs a tool or an agentloop. A tool's value is a result, after which it is open until `ctx.execution.finish`; of a loop
   * it is `{ result? }`.
   */
  readonly execute?: (request: ExecuteRequest, ctx: ExecuteContext<OptionsOf<Options>>) => unknown
  /** Stops an execution, whose own signal has been aborted before. */
  readonly cancel?: (
    target: { readonly sequence: number },
    ctx: OperationContext<OptionsOf<Options>>,
  ) => void | Promise<void>
  /** The session is over, and may still be read. */
  readonly detach?: (ctx: OperationContext<OptionsOf<Options>>) => void | Promise<void>
  /** The environment is given up for good. */
  readonly teardown?: (ctx: OperationContext<OptionsOf<Options>>) => void | Promise<void>
}

/** What `environmentHandler` gives. */
export type EnvironmentHandler = {
  /** Declared methods, as a request for a session has them. */
  readonly methods: EnvironmentMethods
  /**
   * Does what Brain sent to `POST /v1/operations`, once.
   *
   * @param command the parsed body
   * @param signal aborts the operation, for example because the request was
   * @returns what to answer, with status 200, also where something failed
   * @throws BrainError 400 `invalid_request` for what is no command at all
   */
  readonly run: (command: unknown, signal?: AbortSignal) => Promise<EnvironmentResponse>
}
