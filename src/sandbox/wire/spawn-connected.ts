import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import { Socket } from 'node:net'
import { canCallSystem, socketPair } from '../native.ts'
import { Channel, type ChannelEvents } from './channel.ts'

/** A child's descriptors from 0: nothing (/dev/null), or a channel with what to do with its bytes. */
export type Descriptors = readonly ('ignore' | ChannelEvents)[]

export type ConnectedChild = {
  readonly child: ChildProcess
  /** Our ends, in the order in which the descriptors name them. */
  readonly channels: readonly Channel[]
}

export type Spawned = {
  /** Default: this Node. */
  readonly program?: string
  /** All of it. Default: empty. */
  readonly env?: Readonly<Record<string, string>>
}

/**
 * Starts this Node again, or another program, with an environment of its own and channels as its descriptors.
 *
 * @throws Error when this process has no descriptors left
 */
export function spawnConnected(
  args: readonly string[],
  descriptors: Descriptors,
  { program = process.execPath, env = {} }: Spawned = {},
): ConnectedChild {
  return canCallSystem() ? spawnOnOwnSockets(args, descriptors, { program, env }) : spawnOnPipes(args, descriptors, env)
}

/**
 * In a process group of its own: Ctrl-C at a terminal is for whoever was started there, which then ends what it began, and
 * not for the processes that do it.
 */
const OF_ITS_OWN = { cwd: '/', detached: true } as const

/** Our own socket pairs: one read buffer for all of them, and writing without the stream machinery. */
function spawnOnOwnSockets(
  args: readonly string[],
  descriptors: Descriptors,
  { program, env }: Required<Spawned>,
): ConnectedChild {
  const channels: Channel[] = []
  const theirs: number[] = []
  try {
    const stdio = descriptors.map((descriptor) => {
      if (descriptor === 'ignore') return descriptor
      const [here, there] = socketPair()
      theirs.push(there)
      channels.push(new Channel(here, descriptor))
      return there
    })
    return { child: spawn(program, args, { ...OF_ITS_OWN, stdio, env }), channels }
  } catch (error) {
    for (const channel of channels) channel.close()
    throw error
  } finally {
    for (const fd of theirs) closeSync(fd)
  }
}

/** Without system calls of our own (level none on other systems): what Node offers. */
export function spawnOnPipes(
  args: readonly string[],
  descriptors: Descriptors,
  env: Spawned['env'] = {},
): ConnectedChild {
  const stdio = descriptors.map((descriptor) => (descriptor === 'ignore' ? descriptor : 'pipe'))
  const child = spawn(process.execPath, args, { ...OF_ITS_OWN, stdio, env })
  const channels = descriptors.flatMap((descriptor, fd) => {
    const end = child.stdio[fd]
    return descriptor !== 'ignore' && end instanceof Socket ? [new Channel(end, descriptor)] : []
  })
  return { child, channels }
}
