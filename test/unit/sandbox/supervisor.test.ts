import { expect, it } from 'vitest'
import { defaultLimits } from '../../../src/contract/limits.ts'
import type { AgentloopEntry, ToolEntry } from '../../../src/sandbox/sandbox.ts'
import { Supervisor, type SupervisorParts } from '../../../src/sandbox/supervisor/supervisor.ts'
import { FRAME_HEAD } from '../../../src/sandbox/wire/frames.ts'
import { packCall, STOP_REASONS, TO_SUPERVISOR, u32, unpackDone } from '../../../src/sandbox/wire/server-frames.ts'

const MOST_WAITING = 1024

const tool: ToolEntry = { role: 'tool', input: '', configuration: '', deadlineAtMs: 0 }
const agentloop: AgentloopEntry = {
  role: 'agentloop',
  input: '',
  transcript: '',
  kv: '',
  events: '',
  configuration: '',
  system: '',
  tools: '',
  logicalTimeMs: 0,
  deterministicSeed: '',
}

/** A supervisor whose artifacts never come, so that every call waits. @returns it, and the calls that it ends */
function waitingSupervisor() {
  const ended: (readonly [id: number, code: string | undefined])[] = []
  const parts = {
    setup: {
      limits: defaultLimits,
      level: { name: 'none', landlockAbi: 0, remarks: [], unsafe: true },
      dataDirectory: '/nowhere',
      isolation: 'tool',
      workspaceDirectories: {},
    },
    server: {
      writeSoon: (bytes: Buffer) => {
        const body = bytes.subarray(FRAME_HEAD)
        ended.push([body.readUInt32LE(0), unpackDone(body).texts[0]?.toString()])
      },
    },
    artifacts: { peek: () => undefined, load: () => new Promise(() => {}) },
    brokers: { files: () => expect.unreachable(), egress: () => expect.unreachable() },
    openBox: () => expect.unreachable(),
  } as unknown as SupervisorParts
  const supervisor = new Supervisor(parts)
  const call = (id: number, entry: ToolEntry | AgentloopEntry): void => {
    const head = Buffer.alloc(12)
    head.writeUInt32LE(id, 0)
    head.writeDoubleLE(Number.POSITIVE_INFINITY, 4)
    const texts = { key: 'k', owner: String(id), component: 'c', mounts: [], secrets: {}, network: [], entry }
    supervisor.onFrame(TO_SUPERVISOR.CALL, Buffer.concat([head, packCall(texts)]))
  }
  const stop = (id: number): void =>
    supervisor.onFrame(TO_SUPERVISOR.STOP, Buffer.concat([u32(id), Buffer.of(STOP_REASONS.indexOf('cancelled'))]))
  return { call, stop, ended }
}

it.each([
  ['agentloops', agentloop, tool],
  ['tools', tool, agentloop],
])('as many %s as may wait leave room for the others', (_what, many, few) => {
  const { call, stop, ended } = waitingSupervisor()
  for (let id = 1; id <= MOST_WAITING + 1; id++) call(id, many)
  expect(ended).toEqual([[MOST_WAITING + 1, 'overloaded']])
  call(MOST_WAITING + 2, few)
  expect(ended).toHaveLength(1)
  for (let id = 1; id <= MOST_WAITING + 2; id++) stop(id)
  expect(ended).toHaveLength(MOST_WAITING + 2)
})
