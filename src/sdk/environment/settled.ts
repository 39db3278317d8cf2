import { clip, messageOf } from '../../kernel/errors.ts'
import type { EnvironmentReceipt } from '../../contract/environment-protocol.ts'
import { quietly } from '../quietly.ts'
import { receiptOfFailure } from './receipts.ts'

/** What a handler that was told to stop may take to do so, before its operation is answered as unknown. */
const STOPPING_MS = 1000

/** What the work comes to; unknown when it goes on although it was told to stop. */
export async function settled(work: Promise<EnvironmentReceipt>, signal: AbortSignal): Promise<EnvironmentReceipt> {
  const stuck = Promise.withResolvers<EnvironmentReceipt>()
  let timer: ReturnType<typeof setTimeout> | undefined
  const onAbort = (): void => {
    const message = clip(`The operation goes on although it was told to stop: ${messageOf(signal.reason)}`)
    timer = setTimeout(() => stuck.resolve({ type: 'unknown', message }), STOPPING_MS)
  }
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  const receipt = quietly(work).catch((error: unknown) => receiptOfFailure(error, signal.reason))
  return Promise.race([receipt, stuck.promise]).finally(() => {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  })
}
