import { ACCEPTED, type OperationReceipt } from '../../src/dispatch/environments/environment-operation.ts'
import type { BoundCall, CallServices, Receipt, RunningCall, ToolBinding } from '../../src/dispatch/tool-binding.ts'

/** A call that a test conducts by hand, in the place of an executor. */
export type HandCall = {
  readonly call: BoundCall
  readonly services: CallServices
  readonly end: (receipt: Receipt) => void
  readonly cancelled: Promise<'timeout' | 'cancelled'>
}

/** A ToolBinding whose executor is the test. `script` answers calls as they come; without one they wait in `calls`. */
export class HandBinding implements ToolBinding {
  readonly driver = 'brain'
  readonly calls: HandCall[] = []
  readonly #waiting: ((call: HandCall) => void)[] = []
  script: ((call: HandCall) => Promise<Receipt | undefined>) | undefined
  /** What calls end with at their deadline, as if nothing of them had left. */
  unsent: Receipt | undefined

  checkPlacement(): Promise<void> {
    return Promise.resolve()
  }

  checkEnvironment(): void {}

  operate(): Promise<OperationReceipt> {
    return Promise.resolve(ACCEPTED)
  }

  start(call: BoundCall, services: CallServices): RunningCall {
    const receipt = Promise.withResolvers<Receipt>()
    const cancelled = Promise.withResolvers<'timeout' | 'cancelled'>()
    const hand: HandCall = { call, services, end: receipt.resolve, cancelled: cancelled.promise }
    if (this.script === undefined) {
      const waiter = this.#waiting.shift()
      if (waiter === undefined) this.calls.push(hand)
      else waiter(hand)
    } else void this.script(hand).then((given) => given !== undefined && receipt.resolve(given))
    return {
      receipt: receipt.promise,
      cancel: (reason) => {
        cancelled.resolve(reason)
        receipt.resolve({ type: 'stopped', reason })
        return Promise.resolve()
      },
      unsent: () => this.unsent,
    }
  }

  /** The next call that is sent. */
  next(): Promise<HandCall> {
    const call = this.calls.shift()
    return call === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(call)
  }
}
