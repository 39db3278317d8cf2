import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const SCRIPT = `
  import { getCompileCacheDir } from 'node:module'
  import { Worker } from 'node:worker_threads'
  const { threadEnvironment } = await import(process.argv[1])
  const code = \`
    import { getCompileCacheDir } from 'node:module'
    import { parentPort } from 'node:worker_threads'
    parentPort.postMessage([process.env, getCompileCacheDir()])\`
  const thread = new Worker(new URL('data:text/javascript,' + encodeURIComponent(code)), { env: threadEnvironment() })
  thread.on('message', ([env, folder]) => {
    const isShared = folder === getCompileCacheDir()
    console.log(JSON.stringify({ names: Object.keys(env), isKept: folder !== undefined, isShared }))
  })`

async function seenByThread(env: NodeJS.ProcessEnv): Promise<unknown> {
  const module = new URL('../../../src/kernel/thread-environment.ts', import.meta.url).href
  const flags = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', SCRIPT, module]
  const { stdout } = await promisify(execFile)(process.execPath, flags, { env: { SECRET: 'a', ...env } })
  return JSON.parse(stdout)
}

it('threads share what Node keeps of modules, and see nothing else of the environment', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'brain-cache-'))
  try {
    const seen = await seenByThread({ NODE_COMPILE_CACHE: folder })
    expect(seen).toEqual({ names: ['NODE_COMPILE_CACHE'], isKept: true, isShared: true })
    expect(await seenByThread({})).toEqual({ names: [], isKept: false, isShared: true })
  } finally {
    await rm(folder, { recursive: true })
  }
})
