import type { ChildProcess } from 'node:child_process'
import { constants } from 'node:os'
import type { SandboxLevel } from '../sandbox.ts'
import type { Channel, ChannelEvents } from '../wire/channel.ts'
import { type ConnectedChild, type Descriptors, spawnConnected } from '../wire/spawn-connected.ts'
import { BOXED_NODE, boxedBy, bubblewrapArgs, killWrapped } from './bubblewrap.ts'
import type { LaunchOrder } from './launcher.ts'
import { BOOT, bootMessage, BOX_NODE_FLAGS } from './node-flags.ts'
import { ownLibraries } from './own-libraries.ts'

export type BoxLimits = {
  /** RLIMIT_DATA. V8 reserves about 564 MiB of it for its code, before anything runs. */
  readonly dataBytes: number
  /** RLIMIT_CPU: the kernel kills at it. 0 = none. */
  readonly cpuSecs: number
}

export type BoxedProgram = {
  /** A classic script, in which `require` of `node:` modules works; it goes over fd 3. */
  readonly program: Buffer
  /** The launcher's script, from the runtime bundle. */
  readonly launcher: Buffer
  /** Flags of Node beside BOX_NODE_FLAGS. */
  readonly nodeFlags: readonly string[]
  readonly limits: BoxLimits
  readonly level: SandboxLevel
}

export type BoxedEvents = {
  /** Bytes of the program on fd 3. */
  readonly onChannel: ChannelEvents
  /** Bytes of fd 1 and fd 2; the buffer is valid until this returns. */
  readonly onOutput: (fd: 1 | 2, bytes: Buffer) => void
  /** The process has ended. Once; output may still follow. */
  readonly onExit: (how: string) => void
}

/** A Node in a box: no files, no network, no environment, an identity of its own where we are root. */
export type BoxedProcess = {
  /** Of the box itself, from the first byte that comes from it; before, perhaps that of the program that starts it. */
  readonly pid: number
  readonly channel: Channel
  /** Our ends of its stdout and stderr. */
  readonly output: readonly [stdout: Channel, stderr: Channel]
  /** SIGKILL. Does nothing after the end. */
  kill(): void
}

const FIRST_UID = 61_184
const UIDS = 4000
let spawned = Math.floor(Math.random() * UIDS)

/**
 * Starts a program in a box. The process that calls is its parent: it dies with that.
 *
 * @throws Error where the level is `none` and `unsafe` was not set
 */
export function spawnBoxed(boxed: BoxedProgram, events: BoxedEvents): BoxedProcess {
  const { level } = boxed
  if (level.name === 'none' && !level.unsafe)
    throw new Error('Cannot start a box: this machine offers no sandbox level, and BRAIN_ENV_UNSAFE is not set')
  const { child, channels } = start(boxed, [
    'ignore',
    { onBytes: (bytes) => events.onOutput(1, bytes) },
    { onBytes: (bytes) => events.onOutput(2, bytes) },
    events.onChannel,
  ])
  const [stdout, stderr, channel] = channels
  if (stdout === undefined || stderr === undefined || channel === undefined) throw new Error('Cannot connect a box')
  watch(child, level, events.onExit)
  const program = bootMessage(boxed.program)
  channel.write(level.name === 'none' ? program : Buffer.concat([bootMessage(boxed.launcher), program]))
  const isWrapped = level.bubblewrap !== undefined
  const started = child.pid ?? 0
  let inner: number | undefined
  return {
    get pid() {
      if (isWrapped) inner ??= boxedBy(started)
      return inner ?? started
    },
    channel,
    output: [stdout, stderr],
    kill() {
      if (!isWrapped) return void child.kill('SIGKILL')
      // First: the launcher looks at it once nothing but the death of its parents can end the box.
      channel.close()
      killWrapped(child)
    },
  }
}

/** What a program that waits for another adds to the number of the signal that ended it. */
const ENDED_BY_SIGNAL = 128

/** bwrap reports as its exit code by which signal the box ended. */
function signalOf(code: number): string | undefined {
  return Object.entries(constants.signals).find(([, signal]) => signal + ENDED_BY_SIGNAL === code)?.[0]
}

function watch(child: ChildProcess, { bubblewrap }: SandboxLevel, onEnd: (how: string) => void): void {
  let ended = false
  const end = (how: string) => {
    if (ended) return
    ended = true
    onEnd(how)
  }
  child.on('error', (error) => end(error.message))
  // Not 'exit': where its pipes are Node's own, they are read to their end first.
  child.on('close', (code, signal) => {
    const inner = bubblewrap === undefined || code === null ? undefined : signalOf(code)
    end(signal ?? inner ?? `exit code ${code}`)
  })
}

/** The launcher becomes the Node of the box; without a level Node is started as it is. */
function start(boxed: BoxedProgram, descriptors: Descriptors): ConnectedChild {
  const { level } = boxed
  const args = [...BOX_NODE_FLAGS, ...boxed.nodeFlags, '-e', BOOT]
  if (level.name === 'none') return spawnConnected(args, descriptors)
  const launch = ['--no-warnings', '--v8-pool-size=1', '-e', BOOT, JSON.stringify(launchOrder(boxed, args))]
  if (level.bubblewrap === undefined) return spawnConnected(launch, descriptors)
  return spawnConnected([...bubblewrapArgs(isRoot()), ...launch], descriptors, { program: level.bubblewrap.path })
}

const isRoot = (): boolean => process.getuid?.() === 0

function launchOrder({ level, limits }: BoxedProgram, args: readonly string[]): LaunchOrder {
  const isWrapped = level.bubblewrap !== undefined
  return {
    parent: isWrapped ? 0 : process.pid,
    node: isWrapped ? BOXED_NODE : process.execPath,
    libraries: ownLibraries(),
    uid: isRoot() ? FIRST_UID + (spawned++ % UIDS) : 0,
    abi: level.landlockAbi,
    ...limits,
    args,
  }
}
