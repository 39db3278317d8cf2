import { Permits } from '../permits.ts'
import { EgressFailure } from './egress-failure.ts'
import type { Lookup } from './resolve.ts'

export type LookupBounds = {
  /** Lookups at a time: each has a thread until it ends, and nothing ends one early. */
  readonly atOnce: number
  /** Of one owner. */
  readonly perOwner: number
  /** Of one owner, those that wait included. */
  readonly heldPerOwner: number
}

type Job = { readonly owner: string; readonly run: () => void }

/** Shares what looks names up: owners (sessions) come in turn, and one whose names hang leaves room for the others. */
export class FairLookups {
  readonly #lookup: Lookup
  readonly #bounds: LookupBounds
  readonly #permits: Permits<Job>
  readonly #held = new Map<string, number>()

  constructor(lookup: Lookup, bounds: LookupBounds) {
    this.#lookup = lookup
    this.#bounds = bounds
    this.#permits = new Permits(bounds.atOnce, bounds.perOwner)
  }

  /** For one owner; rejects with `DNS-timeout` when too many of its lookups are under way or wait. */
  of(owner: string): Lookup {
    return async (name) => {
      const held = this.#held.get(owner) ?? 0
      if (held >= this.#bounds.heldPerOwner) throw new EgressFailure('DNS-timeout')
      this.#held.set(owner, held + 1)
      const turn = Promise.withResolvers<void>()
      const job: Job = { owner, run: turn.resolve }
      if (this.#permits.enter(job)) job.run()
      await turn.promise
      try {
        return await this.#lookup(name)
      } finally {
        this.#leave(job)
      }
    }
  }

  #leave(job: Job): void {
    const held = (this.#held.get(job.owner) ?? 1) - 1
    if (held === 0) this.#held.delete(job.owner)
    else this.#held.set(job.owner, held)
    this.#permits.leave(job)?.run()
  }
}
