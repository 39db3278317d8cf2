import { describe, expect, it } from 'vitest'
import { Host } from '../../../src/bindings/host/host.ts'
import { defaultLimits } from '../../../src/contract/limits.ts'
import { ToolFailure } from '../../../src/contract/tool-failure.ts'
import type { HostFrame } from '../../../src/contract/host-protocol.ts'
import type { BoundCall, CallServices } from '../../../src/dispatch/tool-binding.ts'
import { BrainError } from '../../../src/kernel/errors.ts'
import { localTenant, newHostId, newSessionId } from '../../../src/kernel/ids.ts'

const session = newSessionId()

/** The services of one call; each waits until the test lets it go on. */
class HeldServices implements CallServices {
  isOpen = true
  readonly ended = new Promise<void>(() => undefined)
  readonly done: string[] = []
  readonly #held: (() => void)[] = []
  readonly #isHeld: boolean

  constructor(isHeld = false) {
    this.#isHeld = isHeld
  }

  async #work(what: string): Promise<number> {
    if (this.#isHeld) await new Promise<void>((resolve) => this.#held.push(resolve))
    this.done.push(what)
    return this.done.length
  }

  /** Lets everything go on that has come. */
  async letGo(): Promise<void> {
    for (const resolve of this.#held.splice(0)) resolve()
    await settled()
  }

  emit = (kind: string): Promise<number> => this.#work(kind)
  emitResult = (): Promise<number> => this.#work('result')
  returned = (): Promise<number> => this.#work('returned')
  finish = async (): Promise<number> => {
    const sequence = await this.#work('finish')
    this.isOpen = false
    return sequence
  }
  model = async (): Promise<string> => String(await this.#work('model'))
  environments = (): Promise<string> => Promise.reject(new BrainError('unsupported_host_call', 'no'))
  note(): void {}
  progress(): void {}
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const callOf = (sequence: number, deadlineAtMs = 0): BoundCall => ({
  tenant: localTenant,
  session,
  sequence,
  tool: 'lookup',
  place: {
    environment: { name: 'app', driver: 'host', host_id: 'h', configuration: null, lifecycle: 'automatic' },
    reference: { name: 'app', sequence: 1 },
    template: 'app',
  },
  grants: [],
  implementation: { type: 'host_function', name: 'lookup' },
  input: '{"id":7}',
  controllerServices: () => expect.unreachable(),
  deadlineAtMs,
  deadlineInMs: undefined,
})

function openHost(hostCommands = 128): Host {
  const kept = { id: newHostId(), tenant: localTenant, tokenDigest: Buffer.alloc(32), sessions: [session] }
  return new Host(kept, { ...defaultLimits, hostCommands }, () => undefined)
}

/** A connection whose reader takes what it is told to. */
function connect(host: Host): { next(): Promise<HostFrame | undefined>; command(): Promise<any>; close(): void } {
  const stop = new AbortController()
  const frames = host.connect(stop.signal)[Symbol.asyncIterator]()
  const next = async (): Promise<HostFrame | undefined> => {
    const { value, done } = await frames.next()
    return done === true ? undefined : (value as HostFrame)
  }
  return {
    next,
    async command() {
      for (;;) {
        const frame = await next()
        if (frame === undefined || frame.event === 'command') return frame?.data
      }
    },
    close: () => stop.abort(),
  }
}

describe('a host', () => {
  it('is told of its activity first, then of each call once', async () => {
    const host = openHost()
    const stream = connect(host)
    expect(await stream.next()).toEqual({ event: 'activity', data: { connection: 1, idle: true } })
    const services = new HeldServices()
    host.start(callOf(5, 1234), 'lookup', services)
    expect(await stream.next()).toEqual({ event: 'activity', data: { connection: 1, idle: false } })
    expect(await stream.next()).toEqual({
      event: 'command',
      data: {
        session_id: session,
        environment: 'app',
        sequence: 5,
        deadline_at_ms: 1234,
        operation: { type: 'invoke_tool', name: 'lookup', input: { id: 7 } },
      },
    })
    await host.update({ session, sequence: 5 }, { type: 'finish' })
    expect(await stream.next()).toEqual({ event: 'activity', data: { connection: 1, idle: true } })
    host.start(callOf(6), 'lookup', new HeldServices())
    expect(await stream.command()).not.toHaveProperty('deadline_at_ms')
  })

  it('is sent nothing while it is not connected', async () => {
    const { receipt } = openHost().start(callOf(5), 'lookup', new HeldServices())
    expect(await receipt).toMatchObject({ type: 'failure', error: { code: 'executor_failed', retryable: false } })
  })

  it('lets so many calls wait for its reader, and refuses the next', async () => {
    const host = openHost(2)
    const stream = connect(host)
    await stream.next()
    const waiting = [5, 6].map((sequence) => host.start(callOf(sequence), 'lookup', new HeldServices()))
    const refused = await host.start(callOf(7), 'lookup', new HeldServices()).receipt
    expect(refused).toMatchObject({ type: 'failure', error: { code: 'overloaded' } })
    // One that was cancelled while it waited is never sent, and makes room.
    await waiting[0]?.cancel('cancelled', 9)
    host.start(callOf(8), 'lookup', new HeldServices())
    expect((await stream.command()).sequence).toBe(6)
    expect((await stream.command()).sequence).toBe(8)
  })

  it('gives a newer connection what was not sent, and loses what was', async () => {
    const host = openHost()
    const [first, calls] = [connect(host), [5, 6].map((one) => host.start(callOf(one), 'lookup', new HeldServices()))]
    expect((await first.command()).sequence).toBe(5)
    const second = connect(host)
    expect(await first.next()).toBeUndefined()
    expect(await calls[0]?.receipt).toMatchObject({ type: 'unknown' })
    expect((await second.command()).sequence).toBe(6)
    expect(() => host.suspend(1)).toThrow(expect.objectContaining({ code: 'conflict' }))
    expect(host.suspend(2)).toBe(false)
    second.close()
    expect(await calls[1]?.receipt).toMatchObject({ type: 'unknown' })
    expect(host.isConnected).toBe(false)
  })

  it('never sent a call that waited when its connection was lost', async () => {
    const host = openHost()
    const stream = connect(host)
    const { receipt } = host.start(callOf(5), 'lookup', new HeldServices())
    stream.close()
    expect(await receipt).toMatchObject({ type: 'failure', error: { code: 'executor_failed' } })
    expect(host.isIdle).toBe(true)
  })

  it('is told of a cancellation when a reader takes it, if there is one', async () => {
    const host = openHost()
    const stream = connect(host)
    const calls = [5, 6].map((one) => host.start(callOf(one), 'lookup', new HeldServices()))
    await stream.command()
    await stream.command()
    let isTold = false
    const telling = calls[0]?.cancel('timeout', 9).then(() => (isTold = true))
    await settled()
    expect(isTold).toBe(false)
    expect(await stream.command()).toMatchObject({
      sequence: 9,
      deadline_at_ms: expect.any(Number),
      operation: { type: 'cancel_tool', target_sequence: 5 },
    })
    await telling
    stream.close()
    await expect(calls[1]?.cancel('timeout', 10)).rejects.toThrow('cannot be told')
  })
})

describe('a call of a host', () => {
  const name = { session, sequence: 5 }

  it('has what it says committed in the order in which it came, and nothing after its end', async () => {
    const host = openHost()
    connect(host)
    const services = new HeldServices(true)
    const { receipt } = host.start(callOf(5), 'lookup', services)
    const updates = [
      host.emit(name, 'first', '1'),
      host.update(name, { type: 'result', outcome: { status: 'ok', value: 1 } }),
      host.update(name, { type: 'finish' }),
      host.emit(name, 'late', '1'),
    ]
    const all = Promise.allSettled(updates)
    for (let round = 0; round < 4; round++) {
      await settled()
      await services.letGo()
    }
    expect((await all).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected'])
    expect(services.done).toEqual(['first', 'result', 'finish'])
    await expect(updates[3]).rejects.toMatchObject({ code: 'conflict' })
    expect(() => host.emit(name, 'later', '1')).toThrow(expect.objectContaining({ code: 'conflict' }))
    await receipt
  })

  it('has eight requests in hand at most; model calls do not wait for each other', async () => {
    const host = openHost()
    connect(host)
    const services = new HeldServices(true)
    host.start(callOf(5), 'lookup', services)
    const asked = Array.from({ length: 8 }, () => host.model(name, '{}'))
    await settled()
    await expect(host.model(name, '{}')).rejects.toMatchObject({ code: 'overloaded' })
    const emitting = Array.from({ length: 8 }, () => host.emit(name, 'event', '1'))
    await expect(host.emit(name, 'ninth', '1')).rejects.toMatchObject({ code: 'overloaded' })
    for (let round = 0; round < 8; round++) {
      await settled()
      await services.letGo()
    }
    expect(await Promise.all([...asked, ...emitting])).toHaveLength(16)
  })

  it('finishes whatever it still asks the model', async () => {
    const host = openHost()
    connect(host)
    const services = new HeldServices()
    services.model = () => new Promise(() => {})
    const { receipt } = host.start(callOf(5), 'lookup', services)
    for (let i = 0; i < 8; i++) void host.model(name, '{}')
    expect(await host.update(name, { type: 'finish' })).toBe(1)
    await receipt
  })

  it('may finish again when the storage refused its finish, whatever it asked the model meanwhile', async () => {
    const host = openHost()
    connect(host)
    const services = new HeldServices()
    const [asked, written] = [Promise.withResolvers<string>(), Promise.withResolvers<number>()]
    const finish = services.finish
    services.model = () => asked.promise
    services.finish = () => {
      services.isOpen = false
      return written.promise
    }
    host.start(callOf(5), 'lookup', services)
    const asking = host.model(name, '{}')
    const finishing = host.update(name, { type: 'finish' })
    await settled()
    asked.reject(new ToolFailure('unknown', 'The model call was stopped'))
    await expect(asking).rejects.toMatchObject({ code: 'conflict' })
    services.isOpen = true
    written.reject(new BrainError('storage_unavailable', 'Cannot write'))
    await expect(finishing).rejects.toMatchObject({ code: 'storage_unavailable' })
    services.finish = finish
    expect(await host.update(name, { type: 'finish' })).toBe(1)
  })

  it('that ends while it asks the model is told that it has ended, not what became of the answer', async () => {
    const host = openHost()
    connect(host)
    const services = new HeldServices()
    const asked = Promise.withResolvers<string>()
    services.model = () => asked.promise
    host.start(callOf(5), 'lookup', services)
    const asking = host.model(name, '{}')
    await host.update(name, { type: 'finish' })
    asked.reject(new ToolFailure('unknown', 'The model call was stopped'))
    await expect(asking).rejects.toMatchObject({ code: 'conflict' })
  })

  it('that was lost has what it had said before on record first', async () => {
    const host = openHost()
    const stream = connect(host)
    const services = new HeldServices(true)
    const { receipt } = host.start(callOf(5), 'lookup', services)
    await stream.command()
    const finishing = host.update(name, { type: 'finish' })
    await settled()
    stream.close()
    await services.letGo()
    expect(await finishing).toBe(1)
    expect(await receipt).toEqual({ type: 'result', text: '' })
  })

  it('is refused a service with its own reason', async () => {
    const host = openHost()
    connect(host)
    host.start(callOf(5), 'lookup', new HeldServices())
    await expect(host.environments(name, '{}')).rejects.toMatchObject({ code: 'unsupported_host_call' })
    expect(host.isIdle).toBe(false)
  })
})
