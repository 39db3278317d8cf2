// The scripts that run in processes of their own. From a checkout esbuild makes them, once at start; a published package
// carries them beside this module.
import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BrainError, messageOf } from '../kernel/errors.ts'
import { bundledOnce } from './bundle-cache.ts'

export type SandboxScripts = {
  /** Puts a process into its box (launch/launcher.ts). */
  readonly launcher: Buffer
  /** Runs in a box (box/main.ts). */
  readonly box: Buffer
  /** Runs between server and boxes (supervisor/main.ts). */
  readonly supervisor: Buffer
}

/** Entry points by script; the published build writes each as `<name>.cjs` beside this module. */
export const SCRIPT_ENTRIES = {
  launcher: './launch/launcher.ts',
  box: './box/main.ts',
  supervisor: './supervisor/main.ts',
} as const satisfies Record<keyof SandboxScripts, string>

type ScriptName = keyof SandboxScripts

const beside = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** Bundles one entry into a classic script for Node. Needs esbuild, a development dependency. */
export async function bundleScript(entry: string): Promise<Buffer> {
  const { buildSync } = await import('esbuild')
  // Synchronous: it leaves no service process behind, and stops none that another bundler is using.
  const result = buildSync({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: 'iife',
    platform: 'node',
    target: 'node26',
    minifyWhitespace: true,
    minifySyntax: true,
    treeShaking: true,
    logLevel: 'silent',
  })
  return Buffer.from(result.outputFiles[0]?.contents ?? [])
}

async function bundleAll(): Promise<SandboxScripts> {
  const make = (name: ScriptName): Promise<Buffer> => bundleScript(beside(SCRIPT_ENTRIES[name]))
  const [launcher = NONE, box = NONE, supervisor = NONE] = await bundledOnce('sandbox', async () => [
    await make('launcher'),
    await make('box'),
    await make('supervisor'),
  ])
  return { launcher, box, supervisor }
}

async function readAll(): Promise<SandboxScripts> {
  const read = (name: ScriptName) => readFile(beside(`./${name}.cjs`))
  const [launcher, box, supervisor] = await Promise.all([read('launcher'), read('box'), read('supervisor')])
  return { launcher, box, supervisor }
}

const NONE = Buffer.alloc(0)

let scripts: Promise<SandboxScripts> | undefined

/**
 * The scripts, made or read once per process.
 *
 * @throws BrainError `internal` when they can neither be read nor made
 */
export function loadScripts(): Promise<SandboxScripts> {
  scripts ??= (extname(import.meta.filename) === '.ts' ? bundleAll() : readAll()).catch((cause: unknown) => {
    scripts = undefined
    throw new BrainError('internal', `Cannot load the scripts of the sandbox: ${messageOf(cause)}`, { cause })
  })
  return scripts
}
