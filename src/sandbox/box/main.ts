// Runs in a box: receives one component, then runs invocations, each in a fresh instance that was made beforehand.
// Everything here shares a process with hostile code: it keeps honest tools right, it protects nobody.
import type { ComponentRole } from '../sandbox.ts'
import { DONE_HEAD, END, FAULT, FROM_BOX, type LoadHead } from '../wire/box-frames.ts'
import { entryTexts, type Texts, unpackAgentloopEntry, unpackToolEntry } from '../wire/entries.ts'
import { unpackTexts } from '../wire/texts.ts'
import { Component, type Guest } from './component.ts'
import { describe, type Ending, endingOf } from './ending.ts'
import { settleEngine } from './engine-defaults.ts'
import { limitRequests, openGate, receive, send, shrinkInbox, takeOutputCounts } from './rpc.ts'
import { beginInvocation, createImports, endInvocation, settleInvocation } from './wasi/imports.ts'

// Not configurable, so that it cannot be deleted; taken away before any guest code is there.
const scope = globalThis as { gc?: (() => void) | undefined }
const collect = scope.gc ?? (() => {})
scope.gc = undefined
const nextTurn = setImmediate

/**
 * Dead instances may hold one part in this many of the memory budget before they are collected. A collection takes 4 to
 * 6 ms: at a quarter it was a third of a box's CPU for small tools (decision 0005).
 */
const DEAD_SHARE = 2

function fail(fault: number, error: unknown): never {
  send(FROM_BOX.FAILED, [Uint8Array.of(fault), describe(error)])
  process.exit(1)
}

function load(): { readonly component: Component; readonly head: LoadHead } {
  const { body } = receive()
  const start = 4 + body.readUInt32LE(0)
  const head = JSON.parse(body.toString('utf8', 4, start)) as LoadHead
  limitRequests(head.limits.frameBytes)
  try {
    const component = new Component(head, body.subarray(start), createImports(head.limits))
    shrinkInbox()
    return { component, head }
  } catch (error) {
    return fail(FAULT.CANNOT_COMPILE, error)
  }
}

function enter(guest: Guest, role: ComponentRole, texts: Texts): string {
  if (role === 'tool') return String(guest.run(unpackToolEntry(texts)))
  const { resultJson } = guest.turn(unpackAgentloopEntry(texts))
  return typeof resultJson === 'string' ? resultJson : ''
}

function run(guest: Guest, role: ComponentRole, body: Buffer): Ending {
  const texts = unpackTexts(body)
  beginInvocation({ mounts: texts.slice(entryTexts[role]).map((path) => path ?? '') })
  openGate(true)
  try {
    const text = enter(guest, role, texts)
    settleInvocation()
    return { kind: END.VALUE, text: Buffer.from(text) }
  } catch (error) {
    const ending = endingOf(error)
    settleAnyway()
    return ending
  } finally {
    openGate(false)
    endInvocation()
  }
}

/** A tool that fails has written what it has written; that it failed says more than that a write did. */
function settleAnyway(): void {
  try {
    settleInvocation()
  } catch {
    // Its end is known already.
  }
}

function report(ending: Ending, runMs: number): void {
  const head = Buffer.allocUnsafe(DONE_HEAD)
  const [stdout, stderr] = takeOutputCounts()
  head[0] = ending.kind
  head.writeDoubleLE(runMs, 1)
  head.writeUInt32LE(stdout, 9)
  head.writeUInt32LE(stderr, 13)
  send(FROM_BOX.DONE, [head, ending.text])
}

/** Makes the instance of the next invocation, collecting the dead ones only when they hold much or are in the way. */
class Instances {
  readonly #component: Component
  readonly #most: number
  #deadBytes = 0
  #dead = 0

  constructor(component: Component, budget: number) {
    this.#component = component
    this.#most = budget / DEAD_SHARE
  }

  /** The latest instance is not used any more. */
  bury(): void {
    this.#deadBytes += this.#component.memoryBytes
    this.#component.release()
    this.#dead++
  }

  async next(): Promise<Guest> {
    if (this.#deadBytes > this.#most) await this.#collect()
    try {
      return await this.#component.instantiate()
    } catch (error) {
      if (this.#dead === 0) throw error
      await this.#collect()
      return this.#component.instantiate()
    }
  }

  async #collect(): Promise<void> {
    // What a weak reference was asked for stays until the event loop turns, which it does nowhere else.
    await new Promise<void>((resolve) => nextTurn(resolve))
    collect()
    this.#deadBytes = this.#dead = 0
  }
}

async function main(): Promise<void> {
  settleEngine()
  send(FROM_BOX.READY)
  const { component, head } = load()
  const instances = new Instances(component, head.limits.linearMemoryBytes)
  for (;;) {
    let guest: Guest | undefined
    try {
      guest = await instances.next()
    } catch (error) {
      fail(FAULT.CANNOT_START, error)
    }
    send(FROM_BOX.IDLE)
    const { body } = receive()
    const started = performance.now()
    const ending = run(guest, head.role, body)
    report(ending, performance.now() - started)
    // After a trap this instance is in no defined state: nothing of it is entered again.
    if (ending.kind === END.FATAL || ending.kind === END.EXIT) process.exit(0)
    guest = undefined
    instances.bury()
  }
}

void main()
