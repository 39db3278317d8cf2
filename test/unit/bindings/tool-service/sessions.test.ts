import { once } from 'node:events'
import { expect, it } from 'vitest'
import { dataOf } from '../../../../src/journal/record.ts'
import { openHarness, type Harness } from '../../../support/session-harness.ts'
import { echoAt, RawService } from '../../../support/tool-service-lab.ts'

const outcomesIn = async (harness: Harness, id: Awaited<ReturnType<Harness['create']>>): Promise<unknown[]> =>
  (await harness.records(id)).flatMap((record) => dataOf(record, 'tool_call_ended')?.outcome ?? [])

it('a server that stops cancels calls of services that outlast its grace, and closes their sockets', async () => {
  const asked = Promise.withResolvers<{ closed: Promise<unknown> }>()
  await using service = await RawService.open((socket) => asked.resolve({ closed: once(socket, 'close') }))
  await using harness = openHarness({ toolServices: [echoAt(service.origin)] })
  const id = await harness.create({ config: { tools: ['echo'] } })
  const answer = harness.call(id, 'echo', {})
  const { closed } = await asked.promise
  await harness.service.drain(20)
  await closed
  expect(await answer).toMatchObject({ outcome: { status: 'cancelled' } })
})

it('a deadline is unreachable before anything was sent, and a timeout after', async () => {
  await using service = await RawService.open(() => undefined)
  await using harness = openHarness({
    toolServices: [echoAt(service.origin, { name: 'plain' }), echoAt('https://tools.test/', { name: 'tunnelled' })],
    // It never opens the tunnel that it is asked for.
    proxies: { https: service.origin },
  })
  const id = await harness.create({ config: { tools: ['plain', 'tunnelled'] } })
  await harness.call(id, 'tunnelled', {}, { deadlineMs: 600 })
  await harness.call(id, 'plain', {}, { deadlineMs: 600 })
  await service.closed()
  const message = 'Cannot reach tool "tunnelled": no connection within the time of the call; nothing was sent'
  expect(await outcomesIn(harness, id)).toEqual([
    { status: 'error', error: { code: 'tool_unreachable', message, retryable: false } },
    { status: 'timeout' },
  ])
  expect(service.requests.map(({ head }) => head.split(' ')[0])).toEqual(['CONNECT', 'POST'])
})
