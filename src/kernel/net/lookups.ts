import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'

/**
 * Lookups at a time. Each holds a thread of this process until the system's resolver gives up, and files are read and
 * written by the same few threads.
 */
const AT_ONCE = 2

const waiting: (() => void)[] = []
let running = 0

/**
 * All addresses of a name, as the system knows them; names wait for each other.
 * @throws what the system says, and the reason of `signal` where it was aborted before the name's turn came
 */
export async function lookUp(name: string, signal: AbortSignal): Promise<readonly LookupAddress[]> {
  if (running >= AT_ONCE) await turn(signal)
  else running++
  try {
    signal.throwIfAborted()
    return await lookup(name, { all: true })
  } finally {
    const next = waiting.shift()
    if (next === undefined) running--
    else next()
  }
}

function turn(signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const onTurn = (): void => {
    signal.removeEventListener('abort', onAbort)
    resolve()
  }
  const onAbort = (): void => {
    waiting.splice(waiting.indexOf(onTurn), 1)
    reject(signal.reason as Error)
  }
  signal.addEventListener('abort', onAbort, { once: true })
  waiting.push(onTurn)
  return promise
}
