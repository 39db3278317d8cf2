import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { Agent, get, request, type IncomingMessage } from 'node:http'
import type { BenchServer } from '../bench-server.ts'
import type { Group } from '../run.ts'

const WARM_UP = 100
const SAMPLES = 300

/**
 * From a request that writes one record, a cancellation of an idle session, until a reader of the event stream has that
 * record: no outside clock shows the commit itself, so the request's way to it and the commit are in the figure.
 */
export const streams: Group = async ({ server }) => {
  const session = await server.openScripted([{ text: 'nothing to say' }])
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const reader = await follow(server, session)
  try {
    const samples: number[] = []
    for (let n = 0; n < WARM_UP + SAMPLES; n++) {
      const began = performance.now()
      const [at] = await Promise.all([reader.next('session_interrupted'), cancel(server, session, agent)])
      if (n >= WARM_UP) samples.push(at - began)
    }
    return { 'commit-to-sse': samples }
  } finally {
    reader.close()
    agent.destroy()
  }
}

type Reader = {
  /** When the next record of a kind arrived. */
  next(kind: string): Promise<number>
  close(): void
}

async function follow(server: BenchServer, session: string): Promise<Reader> {
  const path = `${session}/events?after=${await lastSequence(server, session)}`
  const asked = get({ port: server.port, host: '127.0.0.1', path, headers: { accept: 'text/event-stream' } })
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  let waiting: { readonly kind: string; readonly resolve: (at: number) => void } | undefined
  response.setEncoding('utf8').on('data', (text: string) => {
    if (waiting !== undefined && text.includes(`event: ${waiting.kind}\n`)) waiting.resolve(performance.now())
  })
  return {
    next: (kind) => new Promise((resolve) => (waiting = { kind, resolve })),
    close: () => void response.destroy(),
  }
}

const lastSequence = async (server: BenchServer, session: string): Promise<number> =>
  (await server.api.get<{ readonly last_sequence: number }>(session)).last_sequence

async function cancel(server: BenchServer, session: string, agent: Agent): Promise<void> {
  const headers = { 'idempotency-key': randomUUID(), 'content-length': 0 }
  const asked = request({
    port: server.port,
    host: '127.0.0.1',
    method: 'POST',
    path: `${session}/cancel`,
    headers,
    agent,
  })
  asked.end()
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  response.resume()
  await once(response, 'end')
  if (response.statusCode !== 204) throw new Error(`Cannot cancel: the answer was ${response.statusCode}`)
}
