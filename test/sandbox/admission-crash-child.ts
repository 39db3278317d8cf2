// A server that admits one upload and says where it is; its parent kills it. argv: data directory, where to stop.
import { custom, toBuffer, toolComponent } from '../fixtures/wasm-builder.ts'
import { openStore, spawnInBox } from './admission-store.ts'

const [, , directory = '', stopAt = 'never'] = process.argv
const bytes = toBuffer(toolComponent({ after: [custom('crash', 'x')] }))
const reach = (place: string) => process.stdout.write(`${place}\n`)
const forEver = () => new Promise<never>(() => setInterval(() => {}, 1000))

async function* upload() {
  yield bytes.subarray(0, 100)
  if (stopAt === 'upload') {
    reach('upload')
    await forEver()
  }
  yield bytes.subarray(100)
}

const { store } = await openStore({
  directory,
  spawn: (start, events) => {
    // It is started, and never given its answer: the admission stands in the middle.
    const box = spawnInBox(start, stopAt === 'transpile' ? { ...events, onChannel: { onBytes: () => {} } } : events)
    reach(`transpile ${box.pid}`)
    return box
  },
})
reach('open')
await store.admit('local', upload())
reach('admitted')
await forEver()
