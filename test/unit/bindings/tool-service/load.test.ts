import { readdirSync } from 'node:fs'
import { expect, it } from 'vitest'
import { echoAt, HELLO, jsonAnswer, openToolLab, RawService, STREAM_HEAD } from '../../../support/tool-service-lab.ts'
import { soakOr } from '../../../support/soak.ts'

const descriptors = (): number => readdirSync('/proc/self/fd').length

/** Memory in use once what is not needed was collected, in MiB. */
function heapMiB(): number {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed / 2 ** 20
}

it(
  'many calls of slow services at once leave neither descriptors nor memory behind',
  { timeout: 600_000 },
  async () => {
    const calls = 1000
    const rounds = soakOr(20, 2)
    await using service = await RawService.open(() => undefined)
    const tools = openToolLab(echoAt(service.origin))
    const before = descriptors()
    const heaps: number[] = []
    for (let round = 0; round < rounds; round++) {
      const waiting: (() => void)[] = []
      const all = Promise.withResolvers<void>()
      service.requests.length = 0
      service.script = (socket, { body }) => {
        const { arguments: given } = JSON.parse(body) as { arguments: { index: number } }
        const isStream = given.index % 2 === 1
        if (isStream) socket.write(`${STREAM_HEAD}event: progress\ndata: ${given.index}\n\n`)
        waiting.push(() => {
          if (isStream) socket.end(`event: result\ndata: ${HELLO}\n\n`)
          else socket.write(jsonAnswer(HELLO))
        })
        if (waiting.length === calls) all.resolve()
      }
      const open = Array.from({ length: calls }, (_, index) => tools.call({ input: JSON.stringify({ index }) }))
      await all.promise
      // Every one is open at the same time; some are given up, the others answered.
      await Promise.all(
        open.filter((_, index) => index % 10 === 0).map(({ running }) => running.cancel('cancelled', 1)),
      )
      for (const answer of waiting) answer()
      const ends = await Promise.all(open.map(({ end }) => end))
      const isEnded = (end: unknown, index: number): boolean =>
        index % 10 === 0 ? (end as { type?: string }).type === 'stopped' : (end as { status?: string }).status === 'ok'
      expect(ends.filter((end, index) => !isEnded(end, index))).toEqual([])
      expect(service.requests).toHaveLength(calls)
      heaps.push(heapMiB())
    }
    tools.close()
    await service.closed()
    expect(descriptors()).toBeLessThanOrEqual(before + 2)
    // 1,000 calls that were kept would be tens of MiB a round.
    expect(heaps.at(-1)! - heaps[0]!).toBeLessThan(soakOr(40, 40))
  },
)
