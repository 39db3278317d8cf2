import { Lock } from '../../kernel/lock.ts'
import type { Limits } from '../../contract/limits.ts'
import { Budget } from '../budget.ts'

/** What goes on in the environments of one live session, beyond what its records say. */
export class EnvironmentWork {
  readonly #limits: Limits
  readonly #changing = new Set<string>()
  readonly #making = new Map<string, string>()
  readonly #calls = new Map<string, number>()
  readonly #turnEnds = new Map<string, Lock>()
  readonly #inHand = new Set<Promise<unknown>>()
  #stop = new AbortController()
  #reports: Budget

  constructor(limits: Limits) {
    this.#limits = limits
    this.#reports = new Budget(limits)
  }

  /** What controllers may report until somebody speaks to the session again: their reports wake it, and cost. */
  get reports(): Budget {
    return this.#reports
  }

  renewReports(): void {
    this.#reports = new Budget(this.#limits)
  }

  /** Aborted when the session ends. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** Names that are being made or changed. */
  isChanging(name: string): boolean {
    return this.#changing.has(name)
  }

  /** How many are being made from a template. */
  making(template: string): number {
    return [...this.#making.values()].filter((one) => one === template).length
  }

  async make<Result>(name: string, template: string, work: () => Promise<Result>): Promise<Result> {
    this.#making.set(name, template)
    return this.change(name, work).finally(() => this.#making.delete(name))
  }

  isCalled(name: string): boolean {
    return this.#calls.has(name)
  }

  /** Does work that changes an environment; the caller has looked that nobody else does. */
  async change<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    this.#changing.add(name)
    return this.#follow(work()).finally(() => this.#changing.delete(name))
  }

  async call<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    this.#calls.set(name, (this.#calls.get(name) ?? 0) + 1)
    return this.#follow(work()).finally(() => {
      const left = (this.#calls.get(name) ?? 1) - 1
      if (left === 0) this.#calls.delete(name)
      else this.#calls.set(name, left)
    })
  }

  /** Ends of turns reach an environment one after another. */
  afterTurn(name: string, work: () => Promise<void>): void {
    const lock = this.#turnEnds.get(name) ?? new Lock()
    this.#turnEnds.set(name, lock)
    void this.#follow(lock.run(() => this.call(name, work))).finally(() => {
      if (!lock.isBusy) this.#turnEnds.delete(name)
    })
  }

  #follow<Result>(work: Promise<Result>): Promise<Result> {
    this.#inHand.add(work)
    work.catch(() => undefined).finally(() => this.#inHand.delete(work))
    return work
  }

  get isBusy(): boolean {
    return this.#inHand.size > 0
  }

  /** Resolves when nothing is in hand. */
  async settled(): Promise<void> {
    while (this.#inHand.size > 0) await Promise.allSettled(this.#inHand)
  }

  /** Nobody waits any more for what is in hand. @returns when all of it has come to its end */
  async stop(): Promise<void> {
    this.#stop.abort()
    await this.settled()
    this.#stop = new AbortController()
  }
}
