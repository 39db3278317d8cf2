import { BrainError } from '../../kernel/errors.ts'
import type { JournalHealth } from '../journal.ts'
import { StoreHealth } from './store-health.ts'

/** Failed reads that are tried again; with so many waiting, the others change nothing. */
const MOST_TRIED = 16

type Read = () => Promise<unknown>

/**
 * Tells reads that fail for the store's sake, and tries them again until each has an answer: a disk that failed for a
 * while is found to be well, a page that is damaged stays so.
 */
export class FailedReads implements Disposable {
  readonly #failed = new Map<string, Read>()
  readonly #health = new StoreHealth(() => this.#tryAgain())

  get state(): JournalHealth {
    return this.#health.state
  }

  /** Runs a read; `key` names it among others that failed. */
  async watch<T>(key: () => string, read: () => Promise<T>): Promise<T> {
    try {
      return await read()
    } catch (error) {
      if (error instanceof BrainError && error.code === 'storage_unavailable') this.#note(key(), read, error.message)
      throw error
    }
  }

  #note(key: string, read: Read, reason: string): void {
    if (this.#failed.size < MOST_TRIED) this.#failed.set(key, read)
    this.#health.failed(reason)
  }

  async #tryAgain(): Promise<void> {
    for (const [key, read] of this.#failed) {
      await read()
      this.#failed.delete(key)
    }
    this.#health.succeeded()
  }

  [Symbol.dispose](): void {
    this.#failed.clear()
    this.#health[Symbol.dispose]()
  }
}
