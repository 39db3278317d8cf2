// What an operator takes off the list is taken from sessions that were granted it.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { startServer, TestServer, TestSession } from '../support/server.ts'

async function listening() {
  let requests = 0
  const web = createServer((_request, response) => {
    requests++
    response.writeHead(418).end()
  }).listen(0, '127.0.0.1')
  await once(web, 'listening')
  const authority = `127.0.0.1:${(web.address() as AddressInfo).port}`
  return {
    authority,
    origin: `http://${authority}`,
    requests: () => requests,
    [Symbol.dispose]: () => void web.close(),
  }
}

it('a session that is open is refused an origin from the restart on that takes it off BRAIN_ENV_NETWORK_ALLOW', async () => {
  using kept = await listening()
  using withdrawn = await listening()
  const both = `${kept.origin},${withdrawn.origin}`
  await using server = await startServer({ BRAIN_ENV_NETWORK_ALLOW: both })
  const { id, tool } = await server.sessionWith('http-probe', {
    grants: { network: [kept.origin, withdrawn.origin] },
  })
  const answersOf = async (on: TestServer): Promise<unknown[]> => {
    const session = new TestSession(on, id, tool)
    const answers = []
    for (const { authority } of [kept, withdrawn]) answers.push(await session.value({ authority }))
    return answers
  }
  const afterRestartWith = async (list: string): Promise<unknown[]> => {
    await server.kill('SIGTERM')
    const next = new TestServer(server.directory, { BRAIN_ENV_NETWORK_ALLOW: list })
    await next.start()
    try {
      return await answersOf(next)
    } finally {
      await next.kill('SIGTERM')
    }
  }
  expect(await answersOf(server)).toEqual([{ status: 418 }, { status: 418 }])
  const denied = { error: expect.stringContaining('HttpRequestDenied') }
  expect(await afterRestartWith(kept.origin)).toEqual([{ status: 418 }, denied])
  expect([kept.requests(), withdrawn.requests()]).toEqual([2, 1])
  expect(await afterRestartWith(both)).toEqual([{ status: 418 }, { status: 418 }])
})
