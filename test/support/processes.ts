import { readdir, readFile } from 'node:fs/promises'

type Entry = { readonly pid: number; readonly parent: number; readonly state: string; readonly started: string }

async function entries(): Promise<Entry[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const all = await Promise.all(
    pids.map(async (pid): Promise<Entry | undefined> => {
      const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
      const [state = '', parent = '0', ...rest] = text.slice(text.lastIndexOf(')') + 2).split(' ')
      return text === '' ? undefined : { pid: Number(pid), parent: Number(parent), state, started: rest[17] ?? '' }
    }),
  )
  return all.flatMap((entry) => entry ?? [])
}

export type Process = { readonly pid: number; readonly started: string }

/** Every process below one, at this moment. */
export async function descendantsOf(pid: number): Promise<Process[]> {
  const all = await entries()
  const found: Process[] = []
  const parents = new Set([pid])
  for (let grew = true; grew;) {
    grew = false
    for (const entry of all) {
      if (!parents.has(entry.parent) || parents.has(entry.pid)) continue
      parents.add(entry.pid)
      found.push(entry)
      grew = true
    }
  }
  return found
}

/** Those of the processes that still live; a number that another process has got since does not count. */
export async function livingOf(processes: readonly Process[]): Promise<Process[]> {
  const all = new Map((await entries()).filter(({ state }) => state !== 'Z').map((entry) => [entry.pid, entry.started]))
  return processes.filter(({ pid, started }) => all.get(pid) === started)
}
