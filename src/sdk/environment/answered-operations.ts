import type { EnvironmentResponse } from '../../contract/environment-protocol.ts'
import type { OperationKey } from './read-command.ts'

/** Operations under way at once. */
export const MOST_OPERATIONS = 1024
/** Operations that are known to have been done. */
const MOST_KNOWN = 16_384
/** Characters of the answers that are kept of them; the newest stay. */
const MOST_CHARACTERS = 4 * 2 ** 20

/** What an operation was answered; undefined: it is not kept any more. */
type Answer = { readonly response: EnvironmentResponse | undefined; readonly characters: number }

/**
 * Does every operation once, whoever delivers its command again: to those its answer is given. Of the newest 16384
 * operations it is known that they were done; of those the newest 4 Mi characters of answers are kept. What is known to have
 * been done, and is not kept, is answered `unknown`.
 */
export class AnsweredOperations {
  readonly #running = new Map<string, Promise<EnvironmentResponse>>()
  readonly #answers = new Map<string, Answer>()
  /** Of those in `answers` that have a response, oldest first. */
  readonly #kept = new Set<string>()
  #characters = 0

  get running(): number {
    return this.#running.size
  }

  once(key: OperationKey, work: () => Promise<EnvironmentResponse>): Promise<EnvironmentResponse> {
    const name = nameOf(key)
    const running = this.#running.get(name)
    if (running !== undefined) return running
    const answer = this.#answers.get(name)
    if (answer !== undefined) return Promise.resolve(answer.response ?? forgotten(key))
    const done = work().then((response) => this.#remember(name, response))
    this.#running.set(name, done)
    return done.finally(() => this.#running.delete(name))
  }

  #remember(name: string, response: EnvironmentResponse): EnvironmentResponse {
    const characters = JSON.stringify(response).length
    this.#answers.set(name, { response, characters })
    this.#kept.add(name)
    this.#characters += characters
    for (const oldest of this.#kept) {
      if (this.#characters <= MOST_CHARACTERS) break
      this.#drop(oldest)
      this.#answers.set(oldest, { response: undefined, characters: 0 })
    }
    for (const oldest of this.#answers.keys()) {
      if (this.#answers.size <= MOST_KNOWN) break
      this.#drop(oldest)
      this.#answers.delete(oldest)
    }
    return response
  }

  #drop(name: string): void {
    if (this.#kept.delete(name)) this.#characters -= this.#answers.get(name)?.characters ?? 0
  }
}

/** Identifiers hold no blank. */
export const nameOf = ({ session_id, environment, sequence }: OperationKey): string =>
  `${session_id} ${environment} ${sequence}`

const forgotten = ({ sequence }: OperationKey): EnvironmentResponse => ({
  contract: 'environment/v1',
  sequence,
  receipt: { type: 'unknown', message: 'The operation was done before; what it was answered is not kept any more' },
})
