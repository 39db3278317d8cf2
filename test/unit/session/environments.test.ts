import { expect, it } from 'vitest'
import { expectSoundJournal } from '../../support/journal-checks.ts'
import { sharedHarnesses } from '../../support/session-harness.ts'

const open = sharedHarnesses()

it('an operation of an environment that breaks down has an end on record all the same', async () => {
  await using harness = open()
  const id = await harness.create()
  harness.binding.operate = () => Promise.reject(new Error('the disk is gone'))
  await harness.end(id)
  const records = await harness.records(id)
  expectSoundJournal(records)
  expect(records.find(({ event_type: kind }) => kind === 'environment_detach_failed')?.data).toMatchObject({
    code: 'unknown',
    ambiguous: true,
  })
  harness.sessions.letGo(0)
  expect(harness.sessions.all).toEqual([])
})
