import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Group, timed } from '../run.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const SAMPLES = 20

let built: Promise<string> | undefined
/** The command as it is published: a checkout loads some hundred modules where that loads a few. */
const publishedCommand = (): Promise<string> =>
  (built ??= run(process.execPath, [join(root, '.ci/build/build.ts')], { cwd: root }).then(() =>
    join(root, 'dist/brain-server/bin/brain.js'),
  ))

/** Whole processes, from their start to their end, once the component is admitted. */
export const commands: Group = async ({ subjects }) => {
  const directory = await mkdtemp(join(tmpdir(), 'brain-bench-'))
  const env = { ...process.env, XDG_CACHE_HOME: directory }
  const node = (...args: readonly string[]): Promise<unknown> =>
    run(process.execPath, ['--disable-warning=ExperimentalWarning', ...args], { env })
  const samplesOf = async (...args: readonly string[]): Promise<readonly number[]> => {
    await node(...args)
    const samples: number[] = []
    for (let n = 0; n < SAMPLES; n++) samples.push(await timed(() => node(...args)))
    return samples
  }
  const command = async (name: string, component: Uint8Array): Promise<readonly number[]> => {
    const file = join(directory, `${name}.wasm`)
    await writeFile(file, component)
    return await samplesOf(await publishedCommand(), 'run', file, '--input', '{"text":"to be or not to be"}')
  }
  try {
    const floor = await samplesOf('-e', '0')
    const rust = await command('rust', subjects.wordcount)
    const { python } = subjects
    return {
      'node-start-floor': floor,
      'run-command-rust': rust,
      ...(python === undefined ? {} : { 'run-command-python': await command('python', python) }),
    }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
