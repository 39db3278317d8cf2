import { setLongTimeout } from '../../kernel/long-timeout.ts'
import type { OperationKey } from './read-command.ts'
import { nameOf } from './answered-operations.ts'

/** Executions that have been answered and go on; beyond it the oldest is not told any more that it is cancelled. */
const MOST_OPEN = 4096

/** One execution, from its command until it has finished or nobody waits for it. */
export class OpenExecution {
  readonly deadline: Date | undefined
  readonly #over = new AbortController()
  readonly #services = new AbortController()
  readonly #timer: { clear(): void } | undefined

  /** @param deadlineMs what is left of its deadline; undefined = none */
  constructor(deadlineMs: number | undefined, onDeadline: () => void) {
    this.deadline = deadlineMs === undefined ? undefined : new Date(Date.now() + deadlineMs)
    if (deadlineMs === undefined) return
    this.#timer = setLongTimeout(() => {
      onDeadline()
      this.interrupt(passed())
    }, deadlineMs)
  }

  /** Tells its handler that nobody waits for it. */
  get signal(): AbortSignal {
    return this.#over.signal
  }

  /** Ends what it still asks of Brain. */
  get services(): AbortSignal {
    return this.#services.signal
  }

  interrupt(reason: DOMException): void {
    this.#timer?.clear()
    this.#over.abort(reason)
    this.#services.abort(reason)
  }

  finish(reason: Error): void {
    this.#timer?.clear()
    this.#services.abort(reason)
  }
}

/** Executions whose handlers can be told that they are cancelled. */
export class OpenExecutions {
  readonly #open = new Map<string, OpenExecution>()

  add(key: OperationKey, deadlineMs: number | undefined): OpenExecution {
    const name = nameOf(key)
    const execution = new OpenExecution(deadlineMs, () => this.remove(key))
    this.#open.set(name, execution)
    for (const oldest of this.#open.keys()) {
      if (this.#open.size <= MOST_OPEN) break
      this.#open.delete(oldest)
    }
    return execution
  }

  /** Nobody needs to tell it anything any more. */
  remove(key: OperationKey): void {
    this.#open.delete(nameOf(key))
  }

  cancel(target: OperationKey): void {
    this.#cancel(nameOf(target))
  }

  /** All executions of an environment whose session lets go of it. */
  cancelAll({ session_id, environment }: OperationKey): void {
    for (const name of this.#open.keys()) if (name.startsWith(`${session_id} ${environment} `)) this.#cancel(name)
  }

  #cancel(name: string): void {
    const execution = this.#open.get(name)
    this.#open.delete(name)
    execution?.interrupt(cancelled())
  }
}

const passed = (): DOMException => new DOMException('The deadline of the call has passed', 'TimeoutError')

export const cancelled = (): DOMException => new DOMException('Nobody waits for the operation any more', 'AbortError')
