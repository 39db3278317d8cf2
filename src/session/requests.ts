import { BrainError } from '../kernel/errors.ts'
import { ToolFailure } from '../contract/tool-failure.ts'
import { insist } from '../kernel/insist.ts'
import type { Claim, Claimed, ClaimKey, Journal, StoredAnswer } from '../journal/journal.ts'

/** What an operation answers, ready to be sent. */
export type Answer = { readonly status: number; readonly body: string }

/** How the work of one request settles its claim. */
export type Worked = {
  readonly answer: Answer
  /** The work's own append has answered the claim already (design 3). */
  readonly settled?: boolean
}

/** What the work is given to claim its key with its first record. */
export type ClaimInHand = {
  /** Goes into the append of the first record. */
  readonly claim: Claim
  /** Must be called when an append with this claim was committed. */
  readonly made: () => void
}

export type RequestsParts = {
  readonly journal: Journal
  /** How an error reads on the wire; kept as the answer of a failed operation. */
  readonly encodeError: (error: BrainError | ToolFailure) => Answer
}

/** What a request does when its key is new, and how its answer is had again. */
export type Work = {
  readonly run: (claim: ClaimInHand) => Promise<Worked>
  /** What a failure that is not retryable does to the key: an admission's is released (A24). */
  readonly failed?: 'settle' | 'release'
  /** Rebuilds an answer that is kept as the sequence of a direct call. */
  readonly rebuild?: (answer: StoredAnswer & { type: 'call' }) => Promise<Answer>
}

/** Thrown by work that found its key taken. */
export class KeyTaken extends Error {
  override readonly name = 'KeyTaken'
  readonly claimed: Claimed

  constructor(claimed: Claimed) {
    super('the idempotency key is taken')
    this.claimed = claimed
  }
}

/**
 * Runs each mutating request once per key (contract 0.5, A24).
 *
 * R1  The claim is durable before the work has an effect.
 * R2  The same key and digest answers what was answered, also across restarts and while the first request runs.
 * R3  The same key with another digest is a `conflict`, whatever state the first one is in.
 * R4  A claim without an answer and without a running request is `ambiguous`; its work is never run again.
 * R5  A refusal before the claim, and a failure that is retryable, leave the key free.
 */
export class Requests {
  readonly #parts: RequestsParts
  readonly #running = new Map<string, { digest: string; answer: Promise<Answer> }>()

  constructor(parts: RequestsParts) {
    this.#parts = parts
  }

  run(claim: Claim, work: Work): Promise<Answer> {
    const id = `${claim.scope}\0${claim.key}`
    const running = this.#running.get(id)
    if (running !== undefined) {
      if (running.digest !== claim.digest) return Promise.reject(differs(claim))
      return running.answer
    }
    const answer = this.#work(claim, work).finally(() => this.#running.delete(id))
    this.#running.set(id, { digest: claim.digest, answer })
    return answer
  }

  /** Claims a key for work whose first step has no record of its own. */
  async claim(inHand: ClaimInHand): Promise<void> {
    const claimed = await this.#parts.journal.claim(inHand.claim)
    if (claimed !== undefined) throw new KeyTaken(claimed)
    inHand.made()
  }

  /** Resolves when no request is at work. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled([...this.#running.values()].map(({ answer }) => answer))
  }

  async #work(claim: Claim, work: Work): Promise<Answer> {
    let isMade = false
    let worked: Worked
    try {
      worked = await work.run({ claim, made: () => (isMade = true) })
    } catch (error) {
      if (error instanceof KeyTaken) return this.#replay(claim, error.claimed, work)
      if (isMade) await this.#settleFailure(claim, error, work.failed ?? 'settle')
      // Refused before it reached its claim: what has changed since the first request with this key may be why.
      const claimed = isMade ? undefined : await this.#parts.journal.claimed(keyOf(claim))
      if (claimed !== undefined) return this.#replay(claim, claimed, work)
      throw error
    }
    // The work is done: whatever the storage says, its key must never be free again (R1, R4).
    if (isMade && worked.settled !== true) await insist(() => this.#settle(claim, worked.answer))
    return worked.answer
  }

  async #settleFailure(claim: Claim, error: unknown, failed: 'settle' | 'release'): Promise<void> {
    if (!(error instanceof BrainError || error instanceof ToolFailure)) return // a defect: whether the work was done is not known, so the claim stays open
    if (error.retryable || failed === 'release') await this.#parts.journal.release(keyOf(claim))
    else await this.#settle(claim, this.#parts.encodeError(error))
  }

  async #settle(claim: Claim, answer: Answer): Promise<void> {
    await this.#parts.journal.settle(keyOf(claim), { type: 'body', ...answer })
  }

  async #replay(claim: Claim, claimed: Claimed, { rebuild }: Work): Promise<Answer> {
    if (claimed.digest !== claim.digest) throw differs(claim)
    if (claimed.state === 'open')
      throw new BrainError(
        'ambiguous',
        `Cannot tell what became of the first request with Idempotency-Key "${claim.key}": the server stopped before it was answered; look at the session, then use a new key`,
      )
    const { answer } = claimed
    if (answer.type === 'body') return answer
    if (rebuild === undefined) throw new Error('an answer of a direct call is kept for another operation')
    return rebuild(answer)
  }
}

const keyOf = ({ scope, key }: Claim): ClaimKey => ({ scope, key })

const differs = (claim: Claim): BrainError =>
  new BrainError('conflict', `Cannot use Idempotency-Key "${claim.key}" again: it was used for a different request`)
