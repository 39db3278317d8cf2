import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ServerResponse } from 'node:http'

/** How long a stream waits for its reader, milliseconds. One that is cut off goes on from its last id. */
export type StreamTimes = {
  /** A comment is sent so often, for whoever is between. */
  readonly keepAliveMs: number
  /** A reader that takes nothing for so long is cut off. */
  readonly stalledMs: number
  /** What is left for a reader that lags too far behind must be taken within this time. */
  readonly laggedMs: number
}

const TIMES: StreamTimes = { keepAliveMs: 15_000, stalledMs: 60_000, laggedMs: 5000 }

/** One event of a stream. A live-only one has no id (contract 3.5). */
export type StreamEvent = { readonly id?: number; readonly event: string; readonly data: unknown }

/** Whether the client asks for a stream instead of a page (contract 3.5). */
export const wantsEventStream = (request: FastifyRequest): boolean =>
  (request.headers.accept ?? '').includes('text/event-stream')

/**
 * Sends events as Server-Sent Events, as fast as the reader takes them, until they end or the reader is gone or stalls.
 *
 * @param lagged aborts when no more than what is there will come, since the reader is too slow.
 */
export async function sendEventStream(
  reply: FastifyReply,
  events: AsyncIterable<StreamEvent>,
  lagged: AbortSignal,
  times = TIMES,
): Promise<void> {
  const headers = reply.getHeaders()
  reply.hijack()
  const response = reply.raw
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) response.setHeader(name, value)
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  })
  response.flushHeaders() // before the first event, which may be long in coming
  const keepAlive = setInterval(() => {
    if (!response.writableNeedDrain) response.write(': keep-alive\n\n')
  }, times.keepAliveMs).unref()
  try {
    for await (const event of events) {
      if (response.destroyed) break
      if (!response.write(frameOf(event))) await drained(response, lagged, times)
    }
  } finally {
    clearInterval(keepAlive)
    response.end()
  }
}

function frameOf({ id, event, data }: StreamEvent): string {
  const head = id === undefined ? '' : `id: ${id}\n`
  return `${head}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}

/** Resolves when the reader has taken what waits for it, or is gone; one that does not is sent away. */
function drained(response: ServerResponse, lagged: AbortSignal, times: StreamTimes): Promise<void> {
  return new Promise((resolve) => {
    const cut = (): void => void response.destroy()
    let timer = setTimeout(cut, lagged.aborted ? times.laggedMs : times.stalledMs)
    const onLag = (): void => {
      clearTimeout(timer)
      timer = setTimeout(cut, times.laggedMs)
    }
    const done = (): void => {
      clearTimeout(timer)
      lagged.removeEventListener('abort', onLag)
      response.off('drain', done).off('close', done)
      resolve()
    }
    lagged.addEventListener('abort', onLag, { once: true })
    response.on('drain', done).on('close', done)
  })
}
