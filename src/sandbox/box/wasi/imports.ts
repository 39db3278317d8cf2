import * as rpc from '../rpc.ts'
import { createCli } from './cli.ts'
import { createClocks } from './clocks.ts'
import { IoError, filesystemErrorCode } from './error.ts'
import { Descriptor, DirectoryEntryStream } from './files.ts'
import { createHosts } from './host.ts'
import { createHttp } from './http.ts'
import {
  type BoxChannel,
  CurrentInvocation,
  Invocation,
  type InvocationContext,
  type WasiLimits,
} from './invocation.ts'
import { poll, Pollable } from './poll.ts'
import { createRandom } from './random.ts'
import { createSockets } from './sockets.ts'
import { InputStream, OutputStream } from './streams.ts'

type Interfaces = Readonly<Record<string, object>>

/** jco looks imports up as plain properties: an interface called `constructor` must find nothing (sandbox.md 1). */
const bare = (members: object): object => Object.freeze(Object.assign(Object.create(null), members))

function interfacesOf(current: CurrentInvocation): Interfaces {
  const hosts = createHosts(current)
  const cli = createCli(current)
  const clocks = createClocks(current)
  const random = createRandom(current)
  const sockets = createSockets(current)
  const http = createHttp(current)
  return {
    'brain:tool/host': hosts.tool,
    'brain:agentloop/host': hosts.agentloop,
    'wasi:cli/environment': cli.environment,
    'wasi:cli/exit': cli.exit,
    'wasi:cli/stdin': cli.stdin,
    'wasi:cli/stdout': cli.stdout,
    'wasi:cli/stderr': cli.stderr,
    'wasi:cli/terminal-input': cli.terminalInput,
    'wasi:cli/terminal-output': cli.terminalOutput,
    'wasi:cli/terminal-stdin': cli.terminalStdin,
    'wasi:cli/terminal-stdout': cli.terminalStdout,
    'wasi:cli/terminal-stderr': cli.terminalStderr,
    'wasi:clocks/monotonic-clock': clocks.monotonicClock,
    'wasi:clocks/wall-clock': clocks.wallClock,
    'wasi:filesystem/preopens': {
      getDirectories() {
        const invocation = current.get()
        return invocation.mounts.map((path, mount) => [Descriptor.preopen(invocation, mount), path])
      },
    },
    'wasi:filesystem/types': { Descriptor, DirectoryEntryStream, filesystemErrorCode },
    'wasi:http/types': http.types,
    'wasi:http/outgoing-handler': http.outgoingHandler,
    'wasi:io/error': { Error: IoError },
    'wasi:io/poll': { Pollable, poll },
    'wasi:io/streams': { InputStream, OutputStream },
    'wasi:random/random': random.random,
    'wasi:random/insecure': random.insecure,
    'wasi:random/insecure-seed': random.insecureSeed,
    'wasi:sockets/network': sockets.network,
    'wasi:sockets/instance-network': sockets.instanceNetwork,
    'wasi:sockets/ip-name-lookup': sockets.ipNameLookup,
    'wasi:sockets/tcp': sockets.tcp,
    'wasi:sockets/tcp-create-socket': sockets.tcpCreateSocket,
    'wasi:sockets/udp': sockets.udp,
    'wasi:sockets/udp-create-socket': sockets.udpCreateSocket,
  }
}

/** What a component imports, and the switch for the call that it is imported for. */
export class GuestWorld {
  /** For jco's `instantiate`: interfaces by name, without versions. */
  readonly imports: object
  readonly #current = new CurrentInvocation()
  readonly #channel: BoxChannel
  readonly #limits: WasiLimits

  constructor(channel: BoxChannel, limits: WasiLimits) {
    this.#channel = channel
    this.#limits = limits
    const interfaces = Object.entries(interfacesOf(this.#current))
    this.imports = bare(Object.fromEntries(interfaces.map(([name, members]) => [name, bare(members)])))
  }

  /** From here on imports work; before, and after `end`, each is a trap: nothing of a call is there. */
  begin(context: InvocationContext): void {
    this.#current.begin(new Invocation(context, this.#channel, this.#limits))
  }

  /** What the guest wrote is stored. @throws LostWrite where it cannot be, and nobody was told */
  settle(): void {
    this.#current.get().files.settle()
  }

  end(): void {
    this.#current.end()
  }
}

let world: GuestWorld | undefined

/** The imports of this box. */
export function createImports(limits: WasiLimits, channel: BoxChannel = rpc): object {
  world = new GuestWorld(channel, limits)
  return world.imports
}

export function beginInvocation(context: InvocationContext): void {
  world?.begin(context)
}

/** @throws LostWrite */
export function settleInvocation(): void {
  world?.settle()
}

/** Everything that the invocation opened is gone. */
export function endInvocation(): void {
  world?.end()
}
