import { randomUUID } from 'node:crypto'
import { text, ToolFailure } from '../tool-service.mjs'
import { digestOf } from './canonical-json.mjs'

const MAX_WAITING = 64
const MAX_GRANTS = 1024

/**
 * Questions to a person, and what came of them.
 *
 * P1  An answer counts for one call with its exact arguments: it names the digest of both, which the person was shown.
 * P2  Nothing is approved but by a person's yes: not by time, not by a lost connection, not by a restart (all is in memory).
 * P3  A yes to an action lets exactly this action through, for the session that asked, once, and for a limited time.
 */
export class Approvals {
  #waiting = new Map()
  #grants = new Map()
  #limits
  #listeners = new Set()

  /** @param {{ waitSeconds: number, grantSeconds: number }} limits */
  constructor(limits) {
    this.#limits = limits
  }

  /** The questions without an answer: `{ digest, tenantId, sessionId, callId, arguments }`, oldest first. */
  get waiting() {
    return [...this.#waiting.values()].map(({ asked }) => asked)
  }

  /** Is called with each question when it is asked, and with how it ended. */
  onChange(listener) {
    this.#listeners.add(listener)
  }

  /** The tool `ask_operator`. */
  ask = async (call) => {
    if (this.#waiting.size >= MAX_WAITING) throw new ToolFailure('Too many questions wait for the operator')
    const { tenantId, sessionId, callId, arguments: given, signal } = call
    // Over the call too: the same question asked twice is answered twice. And over what nobody knows beforehand: else two
    // questions could be looked for whose digests begin alike, for an answer that is meant for one to count for the other.
    const digest = digestOf({ tenantId, sessionId, callId, arguments: given, salt: randomUUID() })
    const asked = { digest, tenantId, sessionId, callId, arguments: given }
    const { promise, resolve } = withResolvers()
    const timer = setTimeout(() => resolve('timeout'), this.#limits.waitSeconds * 1000)
    const leave = () => resolve('gone')
    signal.addEventListener('abort', leave)
    this.#waiting.set(digest, { asked, resolve })
    call.progress({ status: 'waiting_for_operator' })
    this.#tell(asked, 'waiting')
    if (signal.aborted) leave()
    const answer = await promise
    clearTimeout(timer)
    signal.removeEventListener('abort', leave)
    this.#waiting.delete(digest)
    this.#tell(asked, answer)
    if (answer === 'timeout') throw new ToolFailure('No operator answered in time. Nothing was approved.')
    if (answer === 'gone') throw new ToolFailure('The call ended before an operator answered. Nothing was approved.')
    if (answer === 'yes' && given.action !== undefined) this.#grant(call)
    return text(`Operator answered ${answer}.`)
  }

  /**
   * A person's answer to the question with this digest.
   * @param {string} digest @param {'yes' | 'no'} answer
   * @returns {boolean} whether the question still waited
   */
  answer(digest, answer) {
    const waiting = this.#waiting.get(digest)
    if (waiting === undefined) return false
    this.#waiting.delete(digest)
    waiting.resolve(answer)
    return true
  }

  /**
   * What a tool that acts asks before it does: whether its very arguments were approved for its session, which uses that up.
   * @throws {ToolFailure} where they were not
   */
  take(tool, call) {
    const key = grantKey(call, { tool, arguments: call.arguments })
    const until = this.#grants.get(key)
    this.#grants.delete(key)
    if (until !== undefined && until > performance.now()) return
    throw new ToolFailure(
      `Not approved: ask_operator first, with action {"tool": "${tool}", "arguments": …} as they are here`,
    )
  }

  #grant(call) {
    const [oldest] = this.#grants.keys()
    if (this.#grants.size >= MAX_GRANTS) this.#grants.delete(oldest)
    this.#grants.set(grantKey(call, call.arguments.action), performance.now() + this.#limits.grantSeconds * 1000)
  }

  #tell(asked, state) {
    for (const listener of this.#listeners) listener(asked, state)
  }
}

/** Of whom the session is was told by Brain; of the action, the model can name only what the person saw. */
const grantKey = ({ tenantId, sessionId }, action) => digestOf({ tenantId, sessionId, action })

/** Node 20 has no `Promise.withResolvers`. */
function withResolvers() {
  let resolve
  const promise = new Promise((settle) => (resolve = settle))
  return { promise, resolve }
}
