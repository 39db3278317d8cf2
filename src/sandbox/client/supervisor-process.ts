import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { BrainError } from '../../kernel/errors.ts'
import type { SandboxScripts } from '../bundle.ts'
import { BOOT, bootMessage } from '../launch/node-flags.ts'
import { endOrphanedBoxes } from '../launch/orphaned-boxes.ts'
import type { Channel } from '../wire/channel.ts'
import { frame, FrameReader, TRUSTED_FRAME_BYTES } from '../wire/frames.ts'
import { FROM_SUPERVISOR, type Setup, TO_SUPERVISOR } from '../wire/server-frames.ts'
import { spawnConnected } from '../wire/spawn-connected.ts'
import { packTexts } from '../wire/texts.ts'
import type { SandboxLogger } from './logger.ts'

export type SupervisorEvents = {
  /** @param body valid until this returns. */
  readonly onFrame: (type: number, body: Buffer) => void
  /** The process is gone, and nothing that was asked of it will be answered. */
  readonly onLost: (how: string) => void
}

export type SupervisorOptions = {
  readonly setup: Setup
  readonly scripts: SandboxScripts
  readonly logger: SandboxLogger
}

const STARTUP_MS = 30_000
const FIRST_RETRY_MS = 50
const LAST_RETRY_MS = 5000
/** One that lived so long did not fail at its start: its successor comes at once. */
const HEALTHY_MS = 5000
const WORDS = 2000
/** For files, and for names that tools look up: such a lookup may hold its thread for a minute (supervisor/main.ts). */
const SUPERVISOR_THREADS = '16'

/** The supervisor as the server has it: one process, replaced when it dies. */
export class SupervisorProcess {
  readonly #options: SupervisorOptions
  readonly #events: SupervisorEvents
  #child: ChildProcess | undefined
  #channel: Channel | undefined
  #failures = 0
  #closed = false
  #retry: NodeJS.Timeout | undefined
  #onReady: (() => void) | undefined

  constructor(options: SupervisorOptions, events: SupervisorEvents) {
    this.#options = options
    this.#events = events
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Starts it. @throws BrainError `sandbox_unavailable` when it does not come up */
  async open(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#onReady = resolve
    const timer = setTimeout(() => reject(unavailable(`it is not ready after ${STARTUP_MS} ms`)), STARTUP_MS)
    try {
      this.#start((how) => reject(unavailable(how)))
      await promise
    } catch (error) {
      await this.close()
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  /** Sends a frame. @returns false while there is no supervisor */
  send(bytes: Buffer): boolean {
    if (this.#channel === undefined) return false
    this.#channel.writeSoon(bytes)
    return true
  }

  /** Ends it and its boxes. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#retry)
    const child = this.#child
    this.#channel?.close()
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }

  #start(onFailed?: (how: string) => void): void {
    const { setup, scripts } = this.#options
    const bornAt = performance.now()
    let words = ''
    const reader = new FrameReader(TRUSTED_FRAME_BYTES, {
      onFrame: (type, body) => (type === FROM_SUPERVISOR.READY ? this.#onReady?.() : this.#events.onFrame(type, body)),
      onBroken: () => child.kill('SIGKILL'),
    })
    const { child, channels } = spawnConnected(
      ['--no-warnings', '--v8-pool-size=1', '-e', BOOT, String(process.pid)],
      [
        'ignore',
        'ignore',
        { onBytes: (bytes) => (words = (words + bytes.toString('utf8')).slice(-WORDS)) },
        { onBytes: (bytes) => reader.push(bytes) },
      ],
      { env: { UV_THREADPOOL_SIZE: SUPERVISOR_THREADS } },
    )
    this.#child = child
    this.#channel = channels[1]
    this.send(bootMessage(scripts.supervisor))
    this.send(frame(TO_SUPERVISOR.SETUP, packTexts([JSON.stringify(setup), scripts.launcher, scripts.box])))
    // While it starts: it looks through all processes.
    if (setup.level.bubblewrap !== undefined) endOrphanedBoxes()
    const end = (how: string) => {
      if (this.#child !== child) return
      this.#child = undefined
      this.#channel?.close()
      this.#channel = undefined
      onFailed?.(`${how}: ${words}`)
      if (this.#closed) return this.#events.onLost('the sandbox is closed')
      this.#options.logger.warn({ how, words }, 'The supervisor of the boxes died and is replaced')
      this.#events.onLost(how)
      this.#restart(performance.now() - bornAt)
    }
    child.on('error', (error) => end(error.message))
    child.on('exit', (code, signal) => end(signal ?? `exit code ${code}`))
  }

  #restart(livedMs: number): void {
    if (livedMs > HEALTHY_MS) this.#failures = 0
    const pause = this.#failures === 0 ? 0 : Math.min(FIRST_RETRY_MS * 2 ** this.#failures, LAST_RETRY_MS)
    this.#failures++
    if (pause === 0) this.#start()
    else this.#retry = setTimeout(() => this.#start(), pause)
  }
}

const unavailable = (reason: string): BrainError =>
  new BrainError('sandbox_unavailable', `Cannot start the supervisor of the boxes: ${reason}`)
