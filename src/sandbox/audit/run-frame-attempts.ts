// Runs what a component may send to the supervisor past the runtime, through a supervisor of its own, and says what came of
// it.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { openProcessSandbox } from '../process-sandbox.ts'
import type { InvocationEnd, Sandbox, SandboxLevel } from '../sandbox.ts'
import { TO_BOX } from '../wire/box-frames.ts'
import { FRAME_ATTEMPTS, FRAME_LIMITS, FRAME_PRELUDE, type FrameAttempt } from './frame-attempts.ts'
import { plantScript } from './plant-script.ts'
import type { AttemptOutcome } from './run-attempts.ts'

const CALL_MS = 10_000
/** So long a box that was not killed at once goes on before it says so. */
const LIVES_ON_MS = 1000
const LARGEST_GROWTH = 64 * 1024 * 1024
const LONGEST_DETAIL = 60
const QUIET_STEP_MS = 20
const AT_REST: ReadonlySet<string> = new Set(['starting', 'warm', 'idle'])
const THROUGH = 'THROUGH'

const running = (body: string): string =>
  `export async function instantiate(getCoreModule, imports) {\nreturn { run() {\n${body}\n} } }\n`

const hostile = ({ source }: FrameAttempt): string =>
  running(`${FRAME_PRELUDE}${source}
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${LIVES_ON_MS})
return '${THROUGH}'`)

/** Right frames, made by the same means: where they are not answered nothing is proven by others that are not. */
const POLITE = running(`${FRAME_PRELUDE}
const answer = Buffer.alloc(65536)
for (const request of [file, finish, file]) {
  put(request)
  const size = fs.readSync(3, answer)
  if (answer.readUInt32LE(0) !== size - 4 || answer[4] !== ${TO_BOX.REPLY}) return 'no answer'
}
return 'answered'`)

const BYSTANDER = running(`imports['brain:tool/host'].emit('a', '1')\nreturn 'undisturbed'`)

type Answer = () => Promise<string>
type Verdict = Pick<AttemptOutcome, 'outcome' | 'detail'>
const ENDED: Verdict = { outcome: 'denied', detail: 'its call was over, and its box ended' }
const through = (detail: string): Verdict => ({ outcome: 'through', detail })

/** Attacks one supervisor, again and again. */
class Attacked {
  readonly #data: string
  readonly #sandbox: Sandbox

  constructor(data: string, sandbox: Sandbox) {
    this.#data = data
    this.#sandbox = sandbox
  }

  async call(script: string, answer: Answer): Promise<InvocationEnd> {
    const component = plantScript(this.#data, script)
    const entry = { role: 'tool', input: '{}', configuration: '{}', deadlineAtMs: 0 } as const
    const order = { key: component, owner: component, component, entry, deadlineInMs: CALL_MS }
    const nothing = { mounts: [], secrets: {}, network: [] }
    const { end } = await this.#sandbox.invoke({ ...order, ...nothing }, { call: answer }).ended
    return end
  }

  /** One attempt, while another tool waits for an answer. */
  async judge(attempt: FrameAttempt): Promise<Verdict> {
    const before = (await this.#sandbox.status()).supervisor
    const asked = Promise.withResolvers<void>()
    const over = Promise.withResolvers<string>()
    const bystander = this.call(BYSTANDER, () => {
      asked.resolve()
      return over.promise
    })
    await Promise.race([asked.promise, bystander])
    // Host calls of the attacker are never answered, so that what it sends next comes before the answer.
    const end = await this.call(hostile(attempt), () => new Promise(() => {}))
    over.resolve('1')
    const beside = await bystander
    const after = (await this.#sandbox.status()).supervisor
    if (before === undefined || after?.pid !== before.pid) return through('the supervisor died')
    if (after.rssBytes - before.rssBytes > LARGEST_GROWTH) return through('the supervisor grew')
    if (beside.type !== 'returned') return through(`another call was ${beside.type}`)
    // What it sent first was a right end of its call: then its box goes for what follows.
    if (end.type === 'returned' && end.text !== THROUGH && (await this.#isQuiet())) return ENDED
    return verdictOf(end)
  }

  /** Whether every box is at rest, or gone, before one that lives on would be. */
  async #isQuiet(): Promise<boolean> {
    for (let left = LIVES_ON_MS / 2; left > 0; left -= QUIET_STEP_MS) {
      const { boxes } = await this.#sandbox.status()
      if (boxes.every(({ state }) => AT_REST.has(state))) return true
      await setTimeout(QUIET_STEP_MS)
    }
    return false
  }
}

function verdictOf(end: InvocationEnd): Verdict {
  if (end.type === 'returned') return through('the box lived on')
  const detail = 'message' in end ? end.message : end.reason
  if (end.type !== 'lost') return { outcome: 'unknown', detail: `${end.type}: ${detail}`.slice(0, LONGEST_DETAIL) }
  return { outcome: 'denied', detail: /\((.*)\)/.exec(detail)?.[1] ?? detail.slice(0, LONGEST_DETAIL) }
}

/**
 * Runs each attempt in a call of its own, beside another tool's call that must not notice.
 *
 * @throws BrainError when the sandbox does not come up
 */
export async function runFrameAttempts(
  level: SandboxLevel,
  attempts: readonly FrameAttempt[] = FRAME_ATTEMPTS,
): Promise<readonly AttemptOutcome[]> {
  await using stack = new AsyncDisposableStack()
  const data = await mkdtemp(join(tmpdir(), 'brain-frames-'))
  stack.defer(() => rm(data, { recursive: true, force: true }))
  const sandbox = stack.use(await openProcessSandbox({ dataDirectory: data, limits: FRAME_LIMITS, level }))
  const attacked = new Attacked(data, sandbox)
  const polite = await attacked.call(POLITE, () => Promise.resolve('1'))
  const isAnswered = polite.type === 'returned' && polite.text === 'answered'
  const rows: AttemptOutcome[] = []
  for (const attempt of attempts) {
    const verdict: Verdict = isAnswered
      ? await attacked.judge(attempt)
      : { outcome: 'unknown', detail: 'a box that keeps the protocol is not answered either' }
    rows.push({ name: attempt.name, category: 'channel', walls: 'whole', ...verdict })
  }
  return rows
}
