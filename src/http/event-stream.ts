import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ServerResponse } from 'node:http'
import type { FeedItem } from '../session/event-feed.ts'

const KEEP_ALIVE_MS = 15_000

/** Whether the client asks for a stream instead of a page (contract 3.5). */
export const wantsEventStream = (request: FastifyRequest): boolean =>
  (request.headers.accept ?? '').includes('text/event-stream')

/** Sends a feed as Server-Sent Events; durable frames carry their sequence as id, live ones have none (contract 3.5). */
export async function sendEventStream(reply: FastifyReply, feed: AsyncIterable<FeedItem>): Promise<void> {
  const headers = reply.getHeaders()
  reply.hijack()
  const response = reply.raw
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) response.setHeader(name, value)
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  })
  response.write(': connected\n\n')
  const keepAlive = setInterval(() => response.write(': keep-alive\n\n'), KEEP_ALIVE_MS).unref()
  try {
    for await (const item of feed) {
      if (response.destroyed) break
      if (!response.write(frameOf(item))) await drained(response)
    }
  } finally {
    clearInterval(keepAlive)
    response.end()
  }
}

function frameOf(item: FeedItem): string {
  if (item.type === 'live') return `event: ${item.frame.type}\ndata: ${JSON.stringify(item.frame.data)}\n\n`
  const { record } = item
  return `id: ${record.sequence}\nevent: ${record.event_type}\ndata: ${JSON.stringify(record)}\n\n`
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })
}
