// The supervisor process: between the server and the boxes, with neither journal nor credentials. Runs as a script
// (bundle.ts); its one argument is the server's process id; fd 3 is its channel to it.
import { must, sys } from '../native.ts'
import { spawnBoxed } from '../launch/spawn-boxed.ts'
import { Channel } from '../wire/channel.ts'
import { frame, FrameReader, TRUSTED_FRAME_BYTES } from '../wire/frames.ts'
import { FROM_SUPERVISOR, type Setup, TO_SUPERVISOR } from '../wire/server-frames.ts'
import { unpackBytes } from '../wire/texts.ts'
import { ArtifactCache } from './artifact-cache.ts'
import { Box } from './box.ts'
import { boxProgram } from './box-program.ts'
import { Supervisor } from './supervisor.ts'

const PR_SET_PDEATHSIG = 1
const SIGKILL = 9
const SERVER_CHANNEL = 3
const EXIT_ORPHAN = 98
const ARTIFACT_BYTES = 64 * 1024 * 1024

/** The server's death is ours, and ours is that of the boxes. */
function followServer(server: number): void {
  if (process.platform !== 'linux') return
  must('prctl', PR_SET_PDEATHSIG, SIGKILL)
  if (sys('getppid') !== server) process.exit(EXIT_ORPHAN)
}

function start(body: Buffer, server: Channel): Supervisor {
  const [json = '', launcher, program] = unpackBytes(Buffer.from(body))
  if (launcher === undefined || program === undefined) throw new Error('an incomplete setup')
  const setup = JSON.parse(json.toString()) as Setup
  const boxed = boxProgram(setup, { launcher, program })
  const supervisor = new Supervisor({
    setup,
    server,
    artifacts: new ArtifactCache(setup.dataDirectory, ARTIFACT_BYTES),
    openFiles: () => {
      throw new Error('no files yet')
    },
    openBox: (events) => new Box((boxedEvents) => spawnBoxed(boxed, boxedEvents), setup.limits, events),
  })
  server.write(frame(FROM_SUPERVISOR.READY))
  supervisor.open()
  return supervisor
}

followServer(Number(process.argv[1]))
let supervisor: Supervisor | undefined
const reader = new FrameReader(TRUSTED_FRAME_BYTES, {
  onFrame: (type, body) => {
    if (type === TO_SUPERVISOR.SETUP) supervisor = start(body, server)
    else supervisor?.onFrame(type, body)
  },
  onBroken: (reason) => {
    throw new Error(`the server sent ${reason}`)
  },
})
const server = new Channel(SERVER_CHANNEL, {
  onBytes: (bytes) => reader.push(bytes),
  onClose: () => process.exit(0),
})
