import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { fixture, startServer, type TestServer, type TestSession } from '../support/server.ts'
import { seededRandom, soakOr } from '../support/soak.ts'

const RUNS = soakOr(1000, 60)
const LANES = 4
const NAME = 'CANARY'
const PATH = `/secrets/${NAME}`
/** Nothing else in the world has it. */
const VALUE = `c${randomBytes(24).toString('hex')}`

let server: TestServer
beforeAll(async () => {
  server = await startServer({ [NAME]: VALUE, BRAIN_ENV_SECRET_ALLOW: NAME, BRAIN_LOG_LEVEL: 'debug' })
})
afterAll(() => server[Symbol.asyncDispose]())

/** A tool that tells its secret does so; all of these use it, or try to, and say nothing. */
const QUIET = [
  { op: 'slurp', path: PATH, n: 3 },
  { op: 'open_close', path: PATH, n: 2 },
  { op: 'stat', path: PATH },
  { op: 'read', path: PATH, kb: 1 },
  { op: 'put', path: PATH, text: 'other' },
  { op: 'put', path: `${PATH}/x`, text: 'other' },
  { op: 'remove', path: PATH },
  { op: 'list', path: '/secrets' },
  { op: 'list', path: PATH },
  { op: 'write', path: PATH, mb: 1 },
  { op: 'spit', path: '/secrets', n: 1 },
  { op: 'get', path: `${PATH}/../../${NAME}` },
  { op: 'battery', path: '/secrets' },
  { op: 'unknown', path: PATH },
] as const
const FATAL = [
  { op: 'panic', path: PATH },
  { op: 'exit', path: PATH, code: 1 },
  { op: 'emit_then_panic', path: PATH, n: 1 },
  { op: 'recurse', path: PATH },
  { op: 'hold', path: PATH, mb: 400 },
  { op: 'sleep', path: PATH, n: 5000 },
] as const

async function run(session: TestSession, random: () => number): Promise<string> {
  const list = random() < 0.85 ? QUIET : FATAL
  const input = list[Math.floor(random() * list.length)]!
  // First it is read, so that it lies in the memory of what dies afterwards.
  const read = await session.call({ op: 'slurp', path: PATH })
  expect(read.outcome).toMatchObject({ status: 'ok' })
  const answer = await session.call(input, input.op === 'sleep' ? { deadlineMs: 50 } : {})
  const log = await server.get(`${session.path}/calls/${answer.sequence}/log`)
  return JSON.stringify(answer) + log.text
}

async function filesOf(directory: string): Promise<string> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n')
}

async function eventsOf(session: TestSession): Promise<string> {
  let pages = ''
  for (let after = 0; ;) {
    const { body, text } = await server.get(`${session.path}/events?after=${after}`)
    pages += text
    if (body.events.length === 0) return pages
    after = body.next_cursor
  }
}

it(`a secret's value is in no record, answer, event, log or file, whatever a tool does: ${RUNS} runs`, async () => {
  const random = seededRandom('secrets')
  const id = await server.admit(await fixture('files'))
  const grants = { secrets: [NAME], filesystem: { workspace: 'write', scratch: 'write' } }
  const sessions = await Promise.all(
    Array.from({ length: LANES }, () => server.session([{ name: 'tool', id }], { grants })),
  )
  const told = await Promise.all(
    sessions.map(async (session) => {
      let text = ''
      for (let turn = 0; turn < RUNS / LANES; turn++) text += await run(session, random)
      return text + (await eventsOf(session))
    }),
  )
  const everything = async () =>
    [...told, (await server.get('/health/ready?verbose')).text, server.log, await filesOf(server.directory)].join('\n')
  const bytes = Buffer.from(VALUE)
  const forms = [VALUE, bytes.toString('base64').slice(0, -2), bytes.toString('hex')]
  const found = await everything()
  expect(forms.filter((form) => found.includes(form))).toEqual([])
  expect(found).toContain('deliberate')
  // The control: the value is there to be found, and is found once a tool has told it.
  expect(await sessions[0]!.value({ op: 'get', path: PATH })).toEqual({ text: VALUE })
  expect(await everything()).toContain(VALUE)
})
