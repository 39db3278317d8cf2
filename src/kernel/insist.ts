import { BrainError } from './errors.ts'

const RETRY_MS = 1000

/**
 * For work that must be done: while it fails with a retryable error it is tried again every second, without end.
 * @throws what the work throws that is not retryable
 */
export async function insist<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof BrainError) || !error.retryable) throw error
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }
}
