// A guest's imports without a guest and without a box: our WASI over a channel that asks a broker directly.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type * as Environment from '@bytecodealliance/preview2-shim/interfaces/wasi-cli-environment'
import type * as ExitInterface from '@bytecodealliance/preview2-shim/interfaces/wasi-cli-exit'
import type * as Stderr from '@bytecodealliance/preview2-shim/interfaces/wasi-cli-stderr'
import type * as Stdin from '@bytecodealliance/preview2-shim/interfaces/wasi-cli-stdin'
import type * as Stdout from '@bytecodealliance/preview2-shim/interfaces/wasi-cli-stdout'
import type * as Monotonic from '@bytecodealliance/preview2-shim/interfaces/wasi-clocks-monotonic-clock'
import type * as Wall from '@bytecodealliance/preview2-shim/interfaces/wasi-clocks-wall-clock'
import type * as Preopens from '@bytecodealliance/preview2-shim/interfaces/wasi-filesystem-preopens'
import type * as Types from '@bytecodealliance/preview2-shim/interfaces/wasi-filesystem-types'
import type * as OutgoingHandler from '@bytecodealliance/preview2-shim/interfaces/wasi-http-outgoing-handler'
import type * as Http from '@bytecodealliance/preview2-shim/interfaces/wasi-http-types'
import type * as Poll from '@bytecodealliance/preview2-shim/interfaces/wasi-io-poll'
import type * as Streams from '@bytecodealliance/preview2-shim/interfaces/wasi-io-streams'
import type * as Insecure from '@bytecodealliance/preview2-shim/interfaces/wasi-random-insecure'
import type * as InsecureSeed from '@bytecodealliance/preview2-shim/interfaces/wasi-random-insecure-seed'
import type * as Random from '@bytecodealliance/preview2-shim/interfaces/wasi-random-random'
import type * as InstanceNetwork from '@bytecodealliance/preview2-shim/interfaces/wasi-sockets-instance-network'
import type * as Lookup from '@bytecodealliance/preview2-shim/interfaces/wasi-sockets-ip-name-lookup'
import type * as TcpCreate from '@bytecodealliance/preview2-shim/interfaces/wasi-sockets-tcp-create-socket'
import type * as UdpCreate from '@bytecodealliance/preview2-shim/interfaces/wasi-sockets-udp-create-socket'
import { defaultLimits } from '../../src/contract/limits.ts'
import { GuestWorld } from '../../src/sandbox/box/wasi/imports.ts'
import type { HostMethod, Mount } from '../../src/sandbox/sandbox.ts'
import { FileBroker } from '../../src/sandbox/supervisor/files/broker.ts'
import { Workspaces } from '../../src/sandbox/supervisor/files/workspaces.ts'
import { EGRESS_REPLY } from '../../src/sandbox/wire/egress.ts'
import { FILE_OP, REQUEST } from '../../src/sandbox/wire/files.ts'

/** The interfaces as a component of that world sees them. */
export type Imports = {
  readonly 'wasi:cli/environment': typeof Environment
  readonly 'wasi:cli/exit': typeof ExitInterface & { readonly exitWithCode: (code: number) => void }
  readonly 'wasi:cli/stdin': typeof Stdin
  readonly 'wasi:cli/stdout': typeof Stdout
  readonly 'wasi:cli/stderr': typeof Stderr
  readonly 'wasi:clocks/monotonic-clock': typeof Monotonic
  readonly 'wasi:clocks/wall-clock': typeof Wall
  readonly 'wasi:filesystem/preopens': typeof Preopens
  readonly 'wasi:filesystem/types': typeof Types
  readonly 'wasi:http/types': typeof Http
  readonly 'wasi:http/outgoing-handler': typeof OutgoingHandler
  readonly 'wasi:io/poll': typeof Poll
  readonly 'wasi:io/streams': typeof Streams
  readonly 'wasi:random/random': typeof Random
  readonly 'wasi:random/insecure': typeof Insecure
  readonly 'wasi:random/insecure-seed': typeof InsecureSeed
  readonly 'wasi:sockets/instance-network': typeof InstanceNetwork
  readonly 'wasi:sockets/ip-name-lookup': typeof Lookup
  readonly 'wasi:sockets/tcp-create-socket': typeof TcpCreate
  readonly 'wasi:sockets/udp-create-socket': typeof UdpCreate
  readonly 'brain:tool/host': {
    readonly emit: (kind: string, payload: string) => bigint
    readonly finish: (outcome: string | undefined) => bigint
    readonly model: (request: string) => string
    readonly telemetry: (record: string) => void
  }
}

/** What jco does with a handle that the guest drops. */
export const drop = (resource: object): void => {
  ;(resource as Partial<Disposable>)[Symbol.dispose]?.()
}

/** What the guest gets when a function throws: jco's rule. An Error without a payload of its own is a trap. */
export function attempt<Result>(run: () => Result): Result | { readonly error: unknown } {
  try {
    return run()
  } catch (error) {
    if (error instanceof Error && Object.hasOwn(error, 'payload'))
      return { error: (error as { payload?: unknown }).payload }
    throw error
  }
}

const OP_NAMES = Object.fromEntries(Object.entries(FILE_OP).map(([name, op]) => [op, name]))

export type HostOptions = {
  readonly mounts?: readonly Mount[]
  readonly secrets?: Readonly<Record<string, string>>
  readonly guestHandles?: number
  readonly fileOps?: number
  readonly openFiles?: number
  readonly hostCall?: (method: HostMethod, texts: readonly (string | undefined)[]) => string
}

/** A data directory, and calls that hold parts of it. */
export class WasiHost implements AsyncDisposable {
  readonly base = mkdtempSync(join(tmpdir(), 'brain-wasi-'))
  readonly root = `${this.base}/native-workspaces/ses/env`
  readonly workspaces: Workspaces
  readonly #brokers: FileBroker[] = []

  constructor() {
    mkdirSync(this.root, { recursive: true })
    this.workspaces = new Workspaces(this.base, defaultLimits)
  }

  /** Begins a call. */
  call(options: HostOptions = {}) {
    const { mounts = [{ guest: '/workspace', workspace: 'ses/env', write: true } as const], secrets = {} } = options
    const broker = new FileBroker(this.workspaces.openMounts(mounts, secrets, 1_700_000_000_000), {
      openFiles: options.openFiles ?? 64,
      fileOps: options.fileOps ?? 0,
      readBytes: 1024 * 1024,
    })
    this.#brokers.push(broker)
    const requests: string[] = []
    const written = { 1: '', 2: '' }
    // As in a box: every reply lies in the same memory, and is good until the next request.
    const inbox = Buffer.alloc(2 * 1024 * 1024)
    const world = new GuestWorld(
      {
        fileRequest(parts) {
          const request = Buffer.concat(parts)
          requests.push(OP_NAMES[request[REQUEST.OP]!]!)
          inbox.fill(0xee)
          const reply = Buffer.concat(broker.answer(request))
          reply.copy(inbox)
          return inbox.subarray(0, reply.length)
        },
        // As the egress broker answers where nothing was granted; test/sandbox/egress.test.ts has the real one.
        egressRequest: () => Buffer.concat([Buffer.of(EGRESS_REPLY.ERROR), Buffer.from('HTTP-request-denied')]),
        hostCall: options.hostCall ?? (() => '1'),
        writeOutput(fd, bytes) {
          written[fd] += Buffer.from(bytes).toString('latin1')
        },
      },
      { guestHandles: options.guestHandles ?? 1024 },
    )
    const guestPaths = [...mounts.map((mount) => mount.guest), ...(Object.keys(secrets).length > 0 ? ['/secrets'] : [])]
    world.begin({ mounts: guestPaths })
    const imports = world.imports as Imports
    const root = () => imports['wasi:filesystem/preopens'].getDirectories()[0]![0]
    return { world, imports, requests, written, broker, root }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const broker of this.#brokers) broker.close()
    await this.workspaces.settled
    this.workspaces.close()
    rmSync(this.base, { recursive: true })
  }
}
