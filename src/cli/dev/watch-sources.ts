import { watch } from 'node:fs'

/** What builds write, and what editors leave: no change of a source. */
const NOT_SOURCES =
  /(?:^|\/)(?:\.[^/]*|node_modules|target|dist|build|__pycache__|[^/]*~|[^/]*\.wasm(?:\.new)?)(?:\/|$)/
/** An editor writes a file in several steps. */
const QUIET_MS = 40

export type Saves = Disposable & {
  /** Aborts at the next save. */
  next(): AbortController
}

/** Watches a folder and everything below it. */
export function watchSources(folder: string): Saves {
  let next = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const watcher = watch(folder, { recursive: true }, (_event, name) => {
    if (name === null || NOT_SOURCES.test(name)) return
    clearTimeout(timer)
    timer = setTimeout(() => next.abort(), QUIET_MS)
  })
  return {
    next: () => (next = next.signal.aborted ? new AbortController() : next),
    [Symbol.dispose]() {
      clearTimeout(timer)
      watcher.close()
    },
  }
}
