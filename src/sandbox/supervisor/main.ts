// The supervisor process: between the server and the boxes, with neither journal nor credentials. Runs as a script
// (bundle.ts); its one argument is the server's process id; fd 3 is its channel to it.
import type { Limits } from '../../contract/limits.ts'
import { BrainError } from '../../kernel/errors.ts'
import { canCallSystem, must, sys } from '../native.ts'
import { spawnBoxed } from '../launch/spawn-boxed.ts'
import { Channel } from '../wire/channel.ts'
import { frame, FrameReader, TRUSTED_FRAME_BYTES } from '../wire/frames.ts'
import { FROM_SUPERVISOR, type Setup, TO_SUPERVISOR } from '../wire/server-frames.ts'
import { unpackBytes } from '../wire/texts.ts'
import { LoadedArtifacts } from './loaded-artifacts.ts'
import { Box } from './box.ts'
import { boxProgram } from './box-program.ts'
import type { CallBrokers, OpenFiles } from './call.ts'
import { EgressBroker } from './egress/broker.ts'
import { FairLookups } from './egress/fair-lookups.ts'
import { systemLookup } from './egress/resolve.ts'
import { FileService } from './file-service.ts'
import { FileBroker } from './files/broker.ts'
import { WorkspaceStore } from './files/workspace-files.ts'
import { Workspaces } from './files/workspaces.ts'
import { Supervisor } from './supervisor.ts'

const PR_SET_PDEATHSIG = 1
const SIGKILL = 9
const SERVER_CHANNEL = 3
const EXIT_ORPHAN = 98
const ARTIFACT_BYTES = 64 * 1024 * 1024
/** Node gives half of its threads (SUPERVISOR_THREADS) to lookups, the other half is left for files. */
const LOOKUPS = { atOnce: 8, perOwner: 2, heldPerOwner: 64 }

/** The server's death is ours, and ours is that of the boxes. */
function followServer(server: number): void {
  if (process.platform !== 'linux') return
  must('prctl', PR_SET_PDEATHSIG, SIGKILL)
  if (sys('getppid') !== server) process.exit(EXIT_ORPHAN)
}

type Parts = { readonly supervisor: Supervisor; readonly files: FileService | undefined }

/** Where the kernel cannot be asked directly (level none on other systems) there are no files. */
function openWorkspaces({ dataDirectory, limits, workspaceDirectories }: Setup): Workspaces | undefined {
  return canCallSystem() ? new Workspaces(dataDirectory, limits, { borrowed: workspaceDirectories }) : undefined
}

function openFiles(workspaces: Workspaces | undefined, limits: Limits): OpenFiles {
  const bounds = {
    openFiles: limits.guestOpenFiles,
    fileOps: limits.guestFileOps,
    readBytes: limits.guestReadBytes,
  }
  return (mounts, secrets) => {
    if (workspaces === undefined) throw new BrainError('sandbox_unavailable', 'Cannot open files: this needs Linux')
    return new FileBroker(workspaces.openMounts(mounts, secrets, Date.now()), bounds)
  }
}

function openEgress(limits: Limits): CallBrokers['egress'] {
  const bounds = {
    requests: limits.egressRequests,
    openRequests: limits.egressOpenRequests,
    requestBytes: limits.egressRequestBytes,
    responseBytes: limits.egressResponseBytes,
    timeoutMs: limits.egressTimeoutSecs * 1000,
  }
  const lookups = new FairLookups(systemLookup, LOOKUPS)
  return (network, owner) => new EgressBroker({ network, limits: bounds, lookup: lookups.of(owner) })
}

function start(body: Buffer, server: Channel): Parts {
  const [json = '', launcher, program] = unpackBytes(Buffer.from(body))
  if (launcher === undefined || program === undefined) throw new Error('an incomplete setup')
  const setup = JSON.parse(json.toString()) as Setup
  const boxed = boxProgram(setup, { launcher, program })
  const workspaces = openWorkspaces(setup)
  const supervisor = new Supervisor({
    setup,
    server,
    artifacts: new LoadedArtifacts(setup.dataDirectory, ARTIFACT_BYTES),
    brokers: { files: openFiles(workspaces, setup.limits), egress: openEgress(setup.limits) },
    openBox: (events) => new Box((boxedEvents) => spawnBoxed(boxed, boxedEvents), setup.limits, events),
  })
  server.write(frame(FROM_SUPERVISOR.READY))
  supervisor.open()
  return { supervisor, files: workspaces && new FileService(new WorkspaceStore(workspaces), server) }
}

followServer(Number(process.argv[1]))
let parts: Parts | undefined
const reader = new FrameReader(TRUSTED_FRAME_BYTES, {
  onFrame: (type, body) => {
    if (type === TO_SUPERVISOR.SETUP) parts = start(body, server)
    else if (type === TO_SUPERVISOR.FILE) parts?.files?.onFrame(body)
    else parts?.supervisor.onFrame(type, body)
  },
  onBroken: (reason) => {
    throw new Error(`the server sent ${reason}`)
  },
})
const server = new Channel(SERVER_CHANNEL, {
  onBytes: (bytes) => reader.push(bytes),
  onClose: () => process.exit(0),
})
