import { defaultLimits } from '../../src/contract/limits.ts'
import { parseComponentId } from '../../src/kernel/ids.ts'
import { type Artifact, readArtifact } from '../../src/sandbox/admission/artifact.ts'
import { loadScripts } from '../../src/sandbox/bundle.ts'
import { type BoxedProgram, spawnBoxed } from '../../src/sandbox/launch/spawn-boxed.ts'
import { Box, type BoxState } from '../../src/sandbox/supervisor/box.ts'
import { boxProgram } from '../../src/sandbox/supervisor/box-program.ts'
import type { Group } from '../run.ts'

const BOXES = 8

/** One box after another, started and loaded as the supervisor does it, with nothing else going on. */
export const boxes: Group = async ({ server, subjects }) => {
  const id = parseComponentId(await server.admit(subjects.wordcount))
  const artifact = await readArtifact(server.dataDirectory, id)
  const { launcher, box: program } = await loadScripts()
  const { level } = await server.status()
  const setup = { limits: defaultLimits, level, dataDirectory: server.dataDirectory, isolation: 'tool' as const }
  const boxed = boxProgram(setup, { launcher, program })
  const spawned: number[] = []
  const loaded: number[] = []
  await server.untilWarm()
  for (let box = 0; box < BOXES; box++) {
    const { spawnMs, loadMs } = await oneBox(boxed, artifact)
    spawned.push(spawnMs)
    loaded.push(loadMs)
  }
  return { 'box-spawn': spawned, 'box-load': loaded }
}

async function oneBox(boxed: BoxedProgram, artifact: Artifact): Promise<{ spawnMs: number; loadMs: number }> {
  const reached = new Map<BoxState, PromiseWithResolvers<number>>()
  const when = (state: BoxState): PromiseWithResolvers<number> => {
    const known = reached.get(state) ?? Promise.withResolvers<number>()
    reached.set(state, known)
    return known
  }
  const began = performance.now()
  const box = new Box((events) => spawnBoxed(boxed, events), defaultLimits, {
    onState: ({ state }) => when(state).resolve(performance.now()),
    onHost: () => undefined,
    onEnd: () => undefined,
  })
  const orDead = async (state: BoxState): Promise<number> => {
    const dead = when('dead').promise.then((): never => {
      throw new Error(`Cannot measure a box: it ended before it was ${state}: ${box.lastWords}`)
    })
    return Promise.race([when(state).promise, dead])
  }
  const spawnMs = (await orDead('warm')) - began
  const loading = performance.now()
  box.load('bench', artifact)
  const loadMs = (await orDead('idle')) - loading
  box.kill()
  await when('dead').promise
  return { spawnMs, loadMs }
}
