// Long runs, of which `npm test` does a slice each: all at once, since each of them mostly waits for processes.
// `npm run soak` does them in full. A seed is printed; BRAIN_TEST_SEED=<seed> makes the same cases again.
import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setImmediate as immediate } from 'node:timers/promises'
import { afterAll, describe, expect, it } from 'vitest'
import { defaultLimits } from '../../src/contract/limits.ts'
import { BrainError } from '../../src/kernel/errors.ts'
import { gate } from '../../src/sandbox/admission/gate.ts'
import { fixture } from '../fixtures/components.ts'
import { custom, toBuffer, toolComponent } from '../fixtures/wasm-builder.ts'
import { ComponentMutator } from '../support/mutate-component.ts'
import { descendantsOf } from '../support/processes.ts'
import { seededRandom, soakOr } from '../support/soak.ts'
import { openStore, refusalOf } from './admission-store.ts'
import { raceFiles } from './file-races.ts'
import { FRAME_FUZZER } from './frame-fuzzer.ts'
import { openLab, scripted, until } from './lab.ts'

const SLICE_MS = 20_000
const RACE_MS = 30_000
const CASES = soakOr(10_000, Number.POSITIVE_INFINITY)
const REFUSALS =
  'empty not_wasm core_module wrong_world refused_import malformed too_large too_complex unsafe_name ' +
  'unsupported_feature bad_metadata cannot_transpile'

function passesGate(bytes: Buffer): true {
  gate(bytes, defaultLimits)
  return true
}

const ENDS = 'returned failed trapped stopped lost environment_not_ready overloaded'

/** Runs numbered cases, so many at a time, until the slice is over. Cases are drawn in order: the seed tells them all. */
async function slice<T>(
  draw: () => T,
  lanes: number,
  run: (drawn: T, number: number) => Promise<void>,
): Promise<number> {
  const end = performance.now() + (CASES === Number.POSITIVE_INFINITY ? SLICE_MS : Number.POSITIVE_INFINITY)
  let number = 0
  const lane = async () => {
    while (number < CASES && performance.now() < end) {
      const mine = number++
      await immediate()
      await run(draw(), mine)
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return number
}

const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

const processesBefore = new Set(descendantsOf(process.pid).map(({ pid }) => pid))
const descriptorsBefore = descriptorsOf(process.pid)
afterAll(async () => {
  const left = () => descendantsOf(process.pid).filter(({ pid }) => !processesBefore.has(pid))
  await until(() => left().length === 0, 'every process that was started is gone')
  await until(() => descriptorsOf(process.pid) <= descriptorsBefore, 'every descriptor is closed')
})

describe.concurrent('slices', () => {
  it('mutated components: admitted or refused, each with its reason, and the good one goes in between', async () => {
    const random = seededRandom('mutated components')
    const names = ['wordcount', 'effect', 'extended-const', 'extended-const-imported', 'start-loop'] as const
    const seeds = new Map<string, Buffer>([['handmade', toBuffer(toolComponent())]])
    for (const name of names) seeds.set(name, await readFile(fixture(name)))
    seeds.set('handmade with an import', toBuffer(toolComponent({ coreImport: ['env', 'give'] })))
    const mutator = new ComponentMutator(random, seeds)
    const opened = await openStore({ limits: { packageBytes: 4 * 1024 * 1024 } })
    const seen = new Map<string, number>()
    const count = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1)
    const admitOnce = async (bytes: Buffer) => {
      const { id } = await opened.admit(bytes)
      await opened.store.remove('local', id)
    }
    const cases = await slice(
      () => mutator.next(),
      2,
      async ({ bytes, how }, number) => {
        const what = `case ${number}: ${how}`
        try {
          // Most are refused by the gate, which takes no time: one in ten of those goes the whole way to disk.
          if (number % 10 === 0 || passesGate(bytes)) await admitOnce(bytes)
          count('admitted')
        } catch (error) {
          if (!(error instanceof BrainError)) throw new Error(what, { cause: error })
          const { fault } = await refusalOf(Promise.reject(error))
          expect([error.code, what]).toEqual(['invalid_request', what])
          expect(REFUSALS.split(' '), what).toContain(fault)
          count(String(fault))
        }
        if (number % 100 === 0) await admitOnce(toBuffer(toolComponent({ after: [custom('number', String(number))] })))
      },
    )
    process.stdout.write(
      `mutated components: ${cases} cases, ${JSON.stringify(Object.fromEntries(seen))}, ${opened.spawned()} children\n`,
    )
    expect(await opened.store.list('local')).toEqual([])
    const left = (await opened.paths()).filter((path) => /\.(?:wasm|js)$/.test(path))
    expect(left).toEqual([])
    await opened.close()
    expect(opened.spawned()).toBeGreaterThan(0)
    expect(seen.size).toBeGreaterThan(2)
  })

  it('mutated frames of a box: the box alone dies of them, and other calls are answered', async () => {
    const random = seededRandom('mutated frames')
    await using lab = await openLab({ warmBoxes: 2 })
    const guest = lab.plant(FRAME_FUZZER)
    const good = lab.plant(scripted(`imports['brain:tool/host'].emit('a', '1'); return 'ok'`))
    expect((await lab.call(good)).end).toEqual({ type: 'returned', text: 'ok' })
    const { pid } = (await lab.sandbox.status()).supervisor!
    const descriptors = descriptorsOf(pid)
    const seen = new Map<string, number>()
    const cases = await slice(
      () => Math.floor(random() * 2 ** 32),
      2,
      async (seed, number) => {
        const input = JSON.stringify({ seed })
        const mounts = [{ guest: '/workspace', workspace: 'slices/env', write: true }] as const
        const { end } = await lab.call(guest, { input, mounts, key: `${guest}-${number % 2}`, deadlineInMs: 1000 })
        // A call may also find no box in time, on a busy machine, or one that broke its protocol while it was idle.
        const kind = end.type === 'refused' ? end.code : end.type
        expect(ENDS.split(' '), `case ${number}, ${input}: ${JSON.stringify(end)}`).toContain(kind)
        seen.set(kind, (seen.get(kind) ?? 0) + 1)
        if (number % 10 === 0)
          expect((await lab.call(good)).end, `after case ${number}, ${input}`).toEqual({ type: 'returned', text: 'ok' })
      },
    )
    process.stdout.write(`mutated frames: ${cases} cases, ${JSON.stringify(Object.fromEntries(seen))}\n`)
    const { supervisor } = await lab.sandbox.status()
    expect(supervisor?.pid).toBe(pid)
    // A box has three descriptors in the supervisor; a few idle ones stay.
    await until(() => descriptorsOf(pid) <= descriptors + 3 * 4, 'no descriptor of a dead box is left')
    expect(seen.get('lost')).toBeGreaterThan(0)
    expect(seen.get('returned')).toBeGreaterThan(0)
  })

  it('races of two guests on the same paths: nothing outside is reached', async () => {
    const random = seededRandom('file races')
    const { mine, foreign, swaps, outside } = await raceFiles(soakOr(600_000, RACE_MS), random)
    process.stdout.write(`file races: ${swaps} swaps, ${mine} reads of the right file\n`)
    expect({ foreign, outside }).toEqual({ foreign: 0, outside: 'as it was' })
    // The control: both were at it.
    expect(Math.min(mine, swaps)).toBeGreaterThan(100)
  })
})
