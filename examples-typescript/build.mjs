// usage: node build.mjs [--out DIR] FOLDER
//
// Builds the agentloop in FOLDER as a component, DIR/FOLDER.wasm (default: beside this script, in `target`). esbuild takes
// the types away and joins the files; componentize-qjs puts QuickJS around them.
import { mkdir, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { componentize } from 'componentize-qjs'
import { build } from 'esbuild'

const HERE = fileURLToPath(new URL('.', import.meta.url))
const DEFINE = fileURLToPath(new URL('../src/sdk/agentloop/define-agentloop.ts', import.meta.url))
const WIT = fileURLToPath(new URL('../wit/agentloop.wit', import.meta.url))

/** @type {import('./build.d.mts').bundleAgentloop} */
export async function bundleAgentloop(folder) {
  const { outputFiles } = await build({
    entryPoints: [join(resolve(HERE, folder), 'loop.ts')],
    bundle: true,
    format: 'esm',
    target: 'es2023',
    // QuickJS would not go on with async functions of its own: defineAgentloop() brings promises that are run.
    supported: { 'async-await': false, 'async-generator': false, 'for-await': false },
    external: ['brain:*'],
    // In this checkout the package is not installed but next door; elsewhere `npm install @aexhq/brain` is enough.
    alias: { '@aexhq/brain/agentloop': DEFINE },
    write: false,
    logLevel: 'silent',
  })
  return outputFiles[0]?.text ?? ''
}

/** @type {import('./build.d.mts').buildAgentloop} */
export async function buildAgentloop(folder) {
  const jsSource = await bundleAgentloop(folder)
  const { component } = await componentize({ witPath: WIT, world: 'agentloop', jsSource, sync: true })
  return component
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values, positionals } = parseArgs({ options: { out: { type: 'string' } }, allowPositionals: true })
  const [folder] = positionals
  if (folder === undefined) throw new Error('Cannot build an agentloop: name its folder')
  const out = resolve(values.out ?? join(HERE, 'target'))
  const file = join(out, `${basename(resolve(HERE, folder))}.wasm`)
  const component = await buildAgentloop(folder)
  await mkdir(out, { recursive: true })
  await writeFile(file, component)
  process.stdout.write(`${file}\n`)
}
