import { parentPort, receiveMessageOnPort, type MessagePort } from 'node:worker_threads'
import type { Call, CallTable, FromThread, Reply, ToThread } from './protocol.ts'
import { explainFault } from './store-fault.ts'

export type Store<Calls extends CallTable> = {
  /** Answers every call, in order. */
  answer(calls: readonly Call<Calls>[]): readonly Reply[]
  /** Work that can wait until the answers are out; true when there is more of it. */
  tidy?(): boolean
  close(): void
}

/**
 * Runs a store as this thread's only business: everything that has arrived while it was busy is one batch (group
 * commit), answered with one message. An open that fails is told; an unforeseen error ends the thread.
 */
export function serveStore<Calls extends CallTable>(open: () => Store<Calls>): void {
  const port = parentPort
  if (port === null) throw new Error('Cannot serve a store: this is not a worker thread')
  const tell = (message: FromThread): void => port.postMessage(message)
  let store: Store<Calls>
  try {
    store = open()
  } catch (error) {
    tell({ type: 'refused', message: explainFault(error) })
    return
  }
  let closed = false
  let tidying = false
  const tidy = (): void => {
    tidying = !closed && store.tidy?.() === true
    if (tidying) setImmediate(tidy)
  }
  port.on('message', (first: ToThread<Calls>) => {
    const batch = drain(port, first)
    if (batch.calls.length > 0) tell({ type: 'replies', replies: store.answer(batch.calls) })
    closed = batch.closes
    if (closed) {
      store.close()
      port.close()
    } else if (!tidying) tidy()
  })
  tell({ type: 'ready' })
  tidy()
}

function drain<Calls extends CallTable>(port: MessagePort, first: ToThread<Calls>) {
  const calls: Call<Calls>[] = []
  let next: ToThread<Calls> | undefined = first
  while (next !== undefined && next !== 'close') {
    for (const call of next) calls.push(call)
    next = receiveMessageOnPort(port)?.message as ToThread<Calls> | undefined
  }
  return { calls, closes: next === 'close' }
}
