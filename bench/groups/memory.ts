import { readFile } from 'node:fs/promises'
import { callLane } from '../bench-server.ts'
import { type Group, WORDS } from '../run.ts'

const MIB = 1024 * 1024
const CALLS = 100

/** Memory after what the other groups of the run did, and after some calls of a small tool. */
export const memory: Group = async ({ server, subjects }) => {
  const path = await server.openSession('wordcount', subjects.wordcount)
  await server.load({
    lanes: [callLane(path, WORDS.input, WORDS.contains)],
    idleMs: 0,
    warmUp: { answers: 0 },
    until: { answers: CALLS },
  })
  const { supervisor, boxes } = await server.status()
  const idle = boxes.filter(({ state }) => state === 'idle')
  if (supervisor === undefined || idle.length === 0) throw new Error('Cannot measure memory: no box is idle')
  return {
    'server-rss': [await residentMiB(server.pid)],
    'supervisor-rss': [supervisor.rssBytes / MIB],
    'box-private': idle.map(({ privateBytes }) => privateBytes / MIB),
  }
}

async function residentMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024
}
