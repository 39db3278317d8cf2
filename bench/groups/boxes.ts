import { defaultLimits } from '../../src/contract/limits.ts'
import { parseComponentId } from '../../src/kernel/ids.ts'
import { type Artifact, readArtifact } from '../../src/sandbox/admission/artifact.ts'
import { loadScripts } from '../../src/sandbox/bundle.ts'
import { type BoxedProgram, spawnBoxed } from '../../src/sandbox/launch/spawn-boxed.ts'
import { Box, type BoxState } from '../../src/sandbox/supervisor/box.ts'
import { boxProgram } from '../../src/sandbox/supervisor/box-program.ts'
import { Call } from '../../src/sandbox/supervisor/call.ts'
import { REPLY_OK, TO_BOX } from '../../src/sandbox/wire/box-frames.ts'
import { frame } from '../../src/sandbox/wire/frames.ts'
import { packTexts } from '../../src/sandbox/wire/texts.ts'
import { type Group, WORDS } from '../run.ts'

const BOXES = 8
/** Calls of one box, after as many that do not count. */
const CALLS = 25

/** One box after another, as the supervisor starts, loads and uses it, with nothing else going on. */
export const boxes: Group = async ({ server, subjects }) => {
  const id = parseComponentId(await server.admit(subjects.wordcount))
  const artifact = await readArtifact(server.dataDirectory, id)
  const { launcher, box: program } = await loadScripts()
  const { level } = await server.status()
  const setup = {
    limits: defaultLimits,
    level,
    dataDirectory: server.dataDirectory,
    isolation: 'tool',
    workspaceDirectories: {},
  } as const
  const boxed = boxProgram(setup, { launcher, program })
  const samples = { 'box-spawn': [] as number[], 'box-load': [] as number[], 'next-instance': [] as number[] }
  await server.untilWarm()
  for (let count = 0; count < BOXES; count++) {
    const box = new WatchedBox(boxed)
    samples['box-spawn'].push(await box.start())
    samples['box-load'].push(await box.load(artifact))
    const instances: number[] = []
    for (let call = 0; call < 2 * CALLS; call++) instances.push(await box.call(call))
    samples['next-instance'].push(...instances.slice(CALLS))
    await box.end()
  }
  return samples
}

function callOf(id: number, invoke: Buffer): Call {
  const whose = { id, key: 'bench', owner: 'bench', role: 'tool', component: '' } as const
  const order = { ...whose, mounts: [], secrets: {}, network: [], invoke, deadline: Number.POSITIVE_INFINITY }
  return new Call(order, defaultLimits, { files: noBroker, egress: noBroker })
}

/** A box of the supervisor's, with answers instead of a server. */
class WatchedBox {
  readonly #box: Box
  readonly #began = performance.now()
  #waiting: { readonly state: BoxState; readonly reached: PromiseWithResolvers<number> } | undefined
  #instanceFrom = 0

  constructor(boxed: BoxedProgram) {
    this.#box = new Box((events) => spawnBoxed(boxed, events), defaultLimits, {
      onState: ({ state }) => this.#onState(state),
      onHost: () => this.#box.answer(Buffer.concat([Buffer.of(REPLY_OK), Buffer.from('1')])),
      onEnd: () => undefined,
    })
  }

  #onState(state: BoxState): void {
    if (state === 'refreshing') this.#instanceFrom = performance.now()
    if (state === this.#waiting?.state) this.#waiting.reached.resolve(performance.now())
    else if (state === 'dead')
      this.#waiting?.reached.reject(new Error(`Cannot measure a box: it died: ${this.#box.lastWords}`))
  }

  /** When it comes to be in this state, by `performance.now()`. Asked before the step that leads there. */
  #at(state: BoxState): Promise<number> {
    const reached = Promise.withResolvers<number>()
    this.#waiting = { state, reached }
    return reached.promise
  }

  async start(): Promise<number> {
    return (await this.#at('warm')) - this.#began
  }

  async load(artifact: Artifact): Promise<number> {
    const began = performance.now()
    const idle = this.#at('idle')
    this.#box.load(callOf(0, Buffer.alloc(0)), artifact)
    return (await idle) - began
  }

  /** Runs one call. @returns how long the instance after it took, collections included */
  async call(id: number): Promise<number> {
    const idle = this.#at('idle')
    const input = packTexts(['0', '{}', JSON.stringify(WORDS.input)])
    this.#box.run(callOf(id, frame(TO_BOX.INVOKE, input)))
    return (await idle) - this.#instanceFrom
  }

  async end(): Promise<void> {
    const dead = this.#at('dead')
    this.#box.kill()
    await dead
  }
}

function noBroker(): never {
  throw new Error('wordcount asks for no files')
}
