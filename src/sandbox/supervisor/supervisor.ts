import { describeLimit } from '../../contract/limits.ts'
import { messageOf } from '../../kernel/errors.ts'
import type { ComponentRole } from '../sandbox.ts'
import { TO_BOX } from '../wire/box-frames.ts'
import type { Channel } from '../wire/channel.ts'
import { frame } from '../wire/frames.ts'
import {
  ENDS,
  FROM_SUPERVISOR,
  packDone,
  type Setup,
  STOP_REASONS,
  type SupervisorStatus,
  TO_SUPERVISOR,
  u32,
  unpackCall,
} from '../wire/server-frames.ts'
import { packTexts } from '../wire/texts.ts'
import { Alarms } from './alarms.ts'
import type { LoadedArtifacts } from './loaded-artifacts.ts'
import { type BoxEvents, type BoxFacts, type Box } from './box.ts'
import { Call, type CallBrokers, type CallEnd } from './call.ts'
import { Permits } from './permits.ts'
import { BoxPool } from './pool.ts'
import { Waiting } from './waiting.ts'
import { privateBytes } from './process-meter.ts'

export type SupervisorParts = {
  readonly setup: Setup
  /** To the server. */
  readonly server: Channel
  readonly artifacts: LoadedArtifacts
  readonly brokers: CallBrokers
  readonly openBox: (events: BoxEvents) => Box
}

const NO_BYTES = Buffer.alloc(0)
const NO_FACTS: BoxFacts = { runMs: 0, cpuMs: 0, stdout: NO_BYTES, stderr: NO_BYTES }
const SOONEST_CPU_CHECK_MS = 50
/** Calls of one role that have not begun, and the bytes of their inputs: what waits must not fill this process. */
const MOST_WAITING = { calls: 1024, bytes: 256 * 1024 * 1024 } as const

/** Calls, from their arrival to their one end: permits, deadlines, budgets. What a box says is handed on unread. */
export class Supervisor {
  readonly #parts: SupervisorParts
  readonly #calls = new Map<number, Call>()
  readonly #permits: Readonly<Record<ComponentRole, Permits<Call>>>
  /** Of each role its own: loops that wait, with whole conversations, must not keep tools from waiting. */
  readonly #waiting: Readonly<Record<ComponentRole, Waiting<Call>>> = {
    tool: new Waiting(MOST_WAITING),
    agentloop: new Waiting(MOST_WAITING),
  }
  readonly #pool: BoxPool
  readonly #deadlines = new Alarms<Call>((call) => this.#onDeadline(call))
  readonly #cpuChecks = new Alarms<Call>((call) => this.#checkCpu(call))

  constructor(parts: SupervisorParts) {
    this.#parts = parts
    const { limits, isolation } = parts.setup
    const { concurrentExecutions: most, sessionExecutions: perSession, boxes } = limits
    // A loop keeps its box while it waits for tools: at least one box is always left to them (contract 6.2).
    const loops = Math.min(most, Math.max(0, boxes - 1))
    this.#permits = { tool: new Permits(most, perSession), agentloop: new Permits(loops, perSession) }
    this.#pool = new BoxPool(
      { limits, isolation, openBox: parts.openBox },
      {
        onHost: (call, body) => parts.server.writeSoon(frame(FROM_SUPERVISOR.HOST, u32(call.id), body)),
        onEnd: (call, end, facts) => this.#end(call, end, facts),
        onRefused: (call, end) => this.#end(call, end, NO_FACTS),
        onBegin: (call) => this.#onBegin(call),
      },
    )
  }

  /** Starts the warm boxes. */
  open(): void {
    this.#pool.open()
  }

  /** A frame of the server that begins with the number of a call. */
  onFrame(type: number, body: Buffer): void {
    const id = body.readUInt32LE(0)
    switch (type) {
      case TO_SUPERVISOR.CALL:
        return this.#onCall(id, body)
      case TO_SUPERVISOR.HOST_REPLY:
        return this.#calls.get(id)?.box?.answer(body.subarray(4))
      case TO_SUPERVISOR.STOP:
        return this.#onStop(id, STOP_REASONS[body[4] ?? 0] ?? 'cancelled')
      case TO_SUPERVISOR.STATUS:
        return this.#parts.server.write(frame(FROM_SUPERVISOR.STATUS, u32(id), JSON.stringify(this.#status())))
      default:
        throw new Error(`frame ${type} from the server`)
    }
  }

  #onCall(id: number, body: Buffer): void {
    const { setup, brokers } = this.#parts
    const received = unpackCall(body, 12)
    const now = performance.now()
    const call = new Call(
      {
        id,
        key: received.key,
        owner: received.owner,
        role: received.role,
        component: received.component,
        mounts: received.mounts,
        secrets: received.secrets,
        network: received.network,
        invoke: frame(TO_BOX.INVOKE, packTexts([...received.guestTexts, ...guestPaths(received)])),
        deadline: now + body.readDoubleLE(4),
      },
      setup.limits,
      brokers,
    )
    this.#calls.set(id, call)
    if (!this.#waiting[call.role].add(call)) {
      const message = `Cannot start the call: ${MOST_WAITING.calls} calls, or ${MOST_WAITING.bytes} bytes of their inputs, wait already`
      this.#end(call, { type: 'refused', code: 'overloaded', message }, NO_FACTS)
      return
    }
    const wait = now + setup.limits.executionWaitSecs * 1000
    this.#deadlines.set(call, Math.min(call.deadline, wait))
    if (this.#permits[call.role].enter(call)) this.#admit(call)
  }

  /** The call has a permit. */
  #admit(call: Call): void {
    call.admitted = true
    const { artifacts } = this.#parts
    call.artifact = artifacts.peek(call.component)
    if (call.artifact !== undefined) return this.#pool.place(call)
    artifacts.load(call.component).then(
      (artifact) => {
        if (call.ended) return
        call.artifact = artifact
        this.#pool.place(call)
      },
      (error: unknown) =>
        this.#end(call, { type: 'unloadable', code: 'environment_not_ready', message: messageOf(error) }, NO_FACTS),
    )
  }

  #onBegin(call: Call): void {
    this.#waiting[call.role].delete(call)
    const { guestCpuSecs } = this.#parts.setup.limits
    if (call.deadline < Number.POSITIVE_INFINITY) this.#deadlines.set(call, call.deadline)
    else this.#deadlines.clear(call)
    // A box has two threads that compute: it cannot use up the limit in less than half of it.
    if (guestCpuSecs > 0) this.#cpuChecks.set(call, performance.now() + guestCpuSecs * 500)
  }

  #checkCpu(call: Call): void {
    const { box } = call
    const { limits } = this.#parts.setup
    if (box?.call !== call) return
    const leftMs = limits.guestCpuSecs * 1000 - box.callCpuMs - call.servedMs
    if (leftMs > 0) return this.#cpuChecks.set(call, performance.now() + Math.max(leftMs / 2, SOONEST_CPU_CHECK_MS))
    box.kill(call.outOfTime())
  }

  #onDeadline(call: Call): void {
    if (call.box?.call === call) return call.box.kill({ type: 'stopped', reason: 'timeout' })
    if (call.box !== undefined && performance.now() >= call.deadline)
      return this.#end(call, { type: 'stopped', reason: 'timeout' }, NO_FACTS)
    const { limits } = this.#parts.setup
    const what = call.admitted ? 'a box' : 'a permit'
    const most = `${describeLimit('executionWaitSecs', limits)}, or until its own deadline`
    const message = `Cannot start the call: it waited for ${what} as long as it may: ${most}`
    this.#end(call, { type: 'refused', code: 'overloaded', message }, NO_FACTS)
  }

  #onStop(id: number, reason: (typeof STOP_REASONS)[number]): void {
    const call = this.#calls.get(id)
    if (call === undefined) return
    if (call.box?.call === call) call.box.kill({ type: 'stopped', reason })
    else this.#end(call, { type: 'stopped', reason }, NO_FACTS)
  }

  /** The one place where a call ends. */
  #end(call: Call, end: CallEnd, facts: BoxFacts): void {
    if (call.ended) return
    call.ended = true
    this.#waiting[call.role].delete(call)
    this.#calls.delete(call.id)
    this.#deadlines.clear(call)
    this.#cpuChecks.clear(call)
    this.#parts.server.writeSoon(
      frame(
        FROM_SUPERVISOR.DONE,
        packDone(call.id, {
          end: ENDS.indexOf(end.type),
          runMs: facts.runMs,
          cpuMs: facts.cpuMs,
          fileOps: call.fileOps,
          hostCalls: call.hostCalls,
        }),
        packTexts([...textsOf(end), facts.stdout, facts.stderr]),
      ),
    )
    call.release()
    if (!call.admitted) {
      this.#permits[call.role].abandon(call)
      return
    }
    this.#pool.withdraw(call)
    const next = this.#permits[call.role].leave(call)
    if (next !== undefined) this.#admit(next)
  }

  #status(): SupervisorStatus {
    const { tool, agentloop } = this.#permits
    return {
      rssBytes: process.memoryUsage.rss(),
      waiting: tool.waiting + agentloop.waiting,
      running: tool.running + agentloop.running,
      boxes: [...this.#pool.boxes].map(({ pid, state }) => ({ pid, state, privateBytes: privateBytes(pid) })),
    }
  }
}

function guestPaths({ mounts, secrets }: Pick<Call, 'mounts' | 'secrets'>): readonly string[] {
  const paths: string[] = mounts.map((mount) => mount.guest)
  for (const _ in secrets) return [...paths, '/secrets']
  return paths
}

function textsOf(end: CallEnd): readonly (Buffer | string | undefined)[] {
  switch (end.type) {
    case 'returned':
      return [end.text, undefined]
    case 'stopped':
      return [end.reason, undefined]
    case 'lost':
      return [end.message, undefined]
    case 'failed':
    case 'failedRetryable':
    case 'trapped':
    case 'refused':
    case 'unloadable':
      return [end.code, end.message]
    default:
      return end satisfies never
  }
}
