import { expect, it } from 'vitest'
import { localTenant, newSessionId } from '../../../src/kernel/ids.ts'
import { defaultLimits } from '../../../src/contract/limits.ts'
import { openMemoryJournal } from '../../../src/journal/memory/memory-journal.ts'
import type { NewRecord } from '../../../src/journal/record.ts'
import { SessionLog } from '../../../src/journal/session-log.ts'

it('commitOwn() gives a record its own sequence, whatever else of the session is on its way', async () => {
  await using journal = openMemoryJournal({ limits: defaultLimits })
  const log = new SessionLog(journal, newSessionId(), 0)
  const put = (key: string): NewRecord => ({ kind: 'kv_set', data: { key, value: 0 } })
  await log.append({ records: [put('first')], create: { tenant: localTenant, labels: {} } })
  const own = (): ReturnType<SessionLog['commitOwn']> =>
    log.commitOwn((sequence) => ({ kind: 'kv_set', data: { key: 'own', value: sequence } }))
  const others = Array.from({ length: 5 }, () => log.commit({ records: [put('other'), put('other')] }))
  const owns = (await Promise.all([own(), own(), log.commit({ records: [put('late')] }), own()])).flat()
  await Promise.all(others)
  const held = owns.filter(({ data }) => (data as { key: string }).key === 'own')
  expect(held.map(({ data }) => (data as { value: number }).value)).toEqual(held.map(({ sequence }) => sequence))
})
