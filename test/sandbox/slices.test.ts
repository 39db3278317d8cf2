// Long runs, of which `npm test` does a slice each, all at once: 30 s of work in all. `npm run soak` does them in full, one
// after another: then each has the processors to itself. A seed is printed; BRAIN_TEST_SEED=<seed> makes the same cases again.
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
import { ComponentScreen } from './slices-screen.ts'

const SLICE_MS = 6000
const RACE_MS = 6000
const CASES = soakOr(10_000, Number.POSITIVE_INFINITY)
const REFUSALS =
  'empty not_wasm core_module wrong_world refused_import malformed too_large too_complex unsafe_name ' +
  'unsupported_feature bad_metadata cannot_transpile'

/**
 * One component in so many goes the whole way, to disk and to a generator of its own, whatever becomes of it. Of the others
 * those do not that the gate refuses, which takes no time, or that the generator calls malformed: it would say the same.
 * Of those that it takes, half do.
 */
const WHOLE_WAY = 20
const TAKEN_WHOLE_WAY = 2
const COMPONENT_LANES = 2

/**
 * Every end that a call may come to. `overloaded` is that of a call that got no box before its deadline, which counts from
 * its arrival: a box takes 0.1 s of a processor to start, and where many processes compete for it that becomes seconds. (Of
 * seed 4242, with a deadline of 1 s, case 20 and 18 others of 31 ended so beside six busy processes on two processors.)
 * `environment_not_ready` is none of them: a box that breaks its protocol costs the call in it, and the calls that wait for
 * it go to another.
 */
const ENDS = 'returned failed trapped stopped lost overloaded'
const FRAME_LANES = 3

/** Runs numbered cases, so many at a time, until the slice is over. Cases are drawn in order: the seed tells them all. */
async function slice<T>(
  draw: () => T,
  lanes: number,
  run: (drawn: T, number: number, lane: number) => Promise<void>,
): Promise<number> {
  const end = performance.now() + (CASES === Number.POSITIVE_INFINITY ? SLICE_MS : Number.POSITIVE_INFINITY)
  let number = 0
  const lane = async (_: unknown, index: number) => {
    while (number < CASES && performance.now() < end) {
      const mine = number++
      await immediate()
      await run(draw(), mine, index)
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return number
}

/** In full each has the processors to itself. */
const slices = soakOr(1, 0) === 1 ? describe : describe.concurrent

const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

const processesBefore = new Set(descendantsOf(process.pid).map(({ pid }) => pid))
const descriptorsBefore = descriptorsOf(process.pid)
afterAll(async () => {
  const left = () => descendantsOf(process.pid).filter(({ pid }) => !processesBefore.has(pid))
  await until(() => left().length === 0, 'every process that was started is gone')
  await until(() => descriptorsOf(process.pid) <= descriptorsBefore, 'every descriptor is closed')
})

slices('slices', () => {
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
    await using stack = new AsyncDisposableStack()
    const screens = Array.from({ length: COMPONENT_LANES }, () => stack.use(new ComponentScreen()))
    const foresee = (bytes: Buffer, lane: number) => screens[lane]!.foresee(bytes)
    const cases = await slice(
      () => mutator.next(),
      COMPONENT_LANES,
      async ({ bytes, how }, number, lane) => {
        const what = `case ${number}: ${how}`
        try {
          if (number % WHOLE_WAY > 0) {
            gate(bytes, defaultLimits)
            const foreseen = await foresee(bytes, lane)
            if (foreseen === 'malformed' || (foreseen === 'taken' && number % TAKEN_WHOLE_WAY > 0)) {
              count(`${foreseen} by the generator`)
              return
            }
          }
          await admitOnce(bytes)
          if (number % WHOLE_WAY === 0) expect(await foresee(bytes, lane), `${what}: admitted`).toBe('taken')
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
    await using lab = await openLab({ warmBoxes: FRAME_LANES })
    const guest = lab.plant(FRAME_FUZZER)
    const good = lab.plant(scripted(`imports['brain:tool/host'].emit('a', '1'); return 'ok'`))
    expect((await lab.call(good)).end).toEqual({ type: 'returned', text: 'ok' })
    const before = await lab.sandbox.status()
    const { pid } = before.supervisor!
    // A box has three descriptors in the supervisor, and one more once it was metered; a workspace that was used has one.
    const besideBoxes = descriptorsOf(pid) - 3 * before.boxes.length + 1
    const seen = new Map<string, number>()
    const cases = await slice(
      () => Math.floor(random() * 2 ** 32),
      FRAME_LANES,
      async (seed, number, lane) => {
        const input = JSON.stringify({ seed })
        const mounts = [{ guest: '/workspace', workspace: 'slices/env', write: true }] as const
        const network = ['http://127.0.0.1:1']
        const { end } = await lab.call(guest, { input, mounts, network, key: `${guest}-${lane}`, deadlineInMs: 2000 })
        const kind = end.type === 'refused' ? end.code : end.type
        expect(ENDS.split(' '), `case ${number}, ${input}: ${JSON.stringify(end)}`).toContain(kind)
        seen.set(kind, (seen.get(kind) ?? 0) + 1)
        if (number % 10 === 0)
          expect((await lab.call(good)).end, `after case ${number}, ${input}`).toEqual({ type: 'returned', text: 'ok' })
      },
    )
    process.stdout.write(`mutated frames: ${cases} cases, ${JSON.stringify(Object.fromEntries(seen))}\n`)
    expect((await lab.sandbox.status()).supervisor?.pid).toBe(pid)
    const holdsNoMore = async () => descriptorsOf(pid) <= besideBoxes + 4 * (await lab.sandbox.status()).boxes.length
    await until(holdsNoMore, 'no descriptor of a dead box is left')
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
