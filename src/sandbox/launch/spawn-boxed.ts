import type { SandboxLevel } from '../sandbox.ts'
import type { Channel, ChannelEvents } from '../wire/channel.ts'
import { spawnConnected } from '../wire/spawn-connected.ts'
import type { LaunchOrder } from './launcher.ts'
import { BOOT, bootMessage, BOX_NODE_FLAGS } from './node-flags.ts'

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
  const args = [...BOX_NODE_FLAGS, ...boxed.nodeFlags, '-e', BOOT]
  const { child, channels } = spawnConnected(level.name === 'none' ? args : launcherArgs(boxed, args), [
    'ignore',
    { onBytes: (bytes) => events.onOutput(1, bytes) },
    { onBytes: (bytes) => events.onOutput(2, bytes) },
    events.onChannel,
  ])
  const [stdout, stderr, channel] = channels
  if (stdout === undefined || stderr === undefined || channel === undefined) throw new Error('Cannot connect a box')
  let ended = false
  const end = (how: string) => {
    if (ended) return
    ended = true
    events.onExit(how)
  }
  child.on('error', (error) => end(error.message))
  // Not 'exit': where its pipes are Node's own, they are read to their end first.
  child.on('close', (code, signal) => end(signal ?? `exit code ${code}`))
  const program = bootMessage(boxed.program)
  channel.write(level.name === 'none' ? program : Buffer.concat([bootMessage(boxed.launcher), program]))
  return { pid: child.pid ?? 0, channel, output: [stdout, stderr], kill: () => void child.kill('SIGKILL') }
}

/** The launcher becomes the Node of the box; without a level Node is started as it is. */
function launcherArgs({ level, limits }: BoxedProgram, args: readonly string[]): readonly string[] {
  const order: LaunchOrder = {
    parent: process.pid,
    uid: process.getuid?.() === 0 ? FIRST_UID + (spawned++ % UIDS) : 0,
    abi: level.landlockAbi,
    ...limits,
    args,
  }
  return ['--no-warnings', '--v8-pool-size=1', '-e', BOOT, JSON.stringify(order)]
}
