// Makes the published packages from the tree: dist/brain-VERSION.tgz and dist/brain-server-VERSION.tgz.
import { execFile } from 'node:child_process'
import { chmod, copyFile, cp, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build, stop } from 'esbuild'
import { bundleTranspiler } from '../../src/sandbox/admission/transpiler/program.ts'
import { bundleScript, SCRIPT_ENTRIES } from '../../src/sandbox/bundle.ts'
import { bundleServer } from './bundle-server.ts'
import { clientManifest, serverManifest, type PackageManifest, type RootManifest } from './manifests.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const from = (path: string): string => join(root, path)

/** Packages whose code is inside the scripts of admission and its modules. */
const BUNDLED = ['@bytecodealliance/jco-transpile', '@bytecodealliance/preview2-shim', 'acorn']

async function compile(project: string, outDirectory: string): Promise<void> {
  await run(from('node_modules/.bin/tsc'), ['-p', from(project), '--outDir', outDirectory]).catch((error: unknown) => {
    const output = error instanceof Error && 'stdout' in error ? String(error.stdout) : ''
    throw new Error(`Cannot compile ${project}: ${output}`, { cause: error })
  })
}

async function describePackage(directory: string, manifest: PackageManifest, readme: string): Promise<void> {
  await mkdir(directory, { recursive: true })
  await Promise.all([
    writeFile(join(directory, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`),
    copyFile(join(import.meta.dirname, readme), join(directory, 'README.md')),
    copyFile(from('LICENSE'), join(directory, 'LICENSE')),
  ])
}

/** Of `@aexhq/brain`, each with an export in its manifest. */
const CLIENT_ENTRIES = ['index', 'environments', 'http', 'http-handler', 'http-server', 'interop']

async function buildClient(directory: string, manifest: RootManifest): Promise<void> {
  await describePackage(directory, clientManifest(manifest), 'readme-brain.md')
  await compile('src/sdk/tsconfig.build.json', join(directory, 'lib'))
  // What several entries need is there once: errors of one are those of the others.
  await build({
    entryPoints: CLIENT_ENTRIES.map((name) => from(`src/sdk/${name}.ts`)),
    outdir: join(directory, 'lib/sdk'),
    outbase: from('src/sdk'),
    bundle: true,
    splitting: true,
    packages: 'external',
    format: 'esm',
    platform: 'neutral',
    target: 'es2024',
    logLevel: 'silent',
  })
  await buildAuthoring(directory)
  await mkdir(join(directory, 'contracts'))
  for (const contract of ['tool.wit', 'agentloop.wit', 'session.json', 'host-config.json'])
    await copyFile(from(`wit/${contract}`), join(directory, 'contracts', contract))
}

/** What authors of tools and agentloops, and who runs them, have beside the client. */
async function buildAuthoring(directory: string): Promise<void> {
  const common = { bundle: true, packages: 'external', format: 'esm', target: 'es2024', logLevel: 'silent' } as const
  const outdir = join(directory, 'lib/sdk')
  const entries = ['runtime', 'package/package-tools', 'runtime/brain-tool-runtime', 'package/brain-tools']
  await build({
    ...common,
    entryPoints: entries.map((entry) => from(`src/sdk/${entry}.ts`)),
    outbase: from('src/sdk'),
    outdir,
    platform: 'node',
    splitting: true,
    chunkNames: 'node/[hash]',
  })
  // What goes into components shares nothing with what runs elsewhere.
  for (const entry of ['agentloop/define-agentloop', 'component'])
    await build({
      ...common,
      entryPoints: [from(`src/sdk/${entry}.ts`)],
      outfile: join(outdir, `${entry}.js`),
      platform: 'neutral',
      external: ['brain:*', 'wasi:*'],
    })
  for (const command of ['runtime/brain-tool-runtime.js', 'package/brain-tools.js'])
    await chmod(join(outdir, command), 0o755)
}

async function buildServer(directory: string, manifest: RootManifest): Promise<void> {
  await describePackage(directory, serverManifest(manifest), 'readme-brain-server.md')
  const lib = join(directory, 'lib')
  await compile('src/tsconfig.build.json', join(directory, 'modules'))
  await bundleServer(join(directory, 'modules'), lib)
  await rm(join(directory, 'modules'), { recursive: true })
  await mkdir(join(lib, 'sandbox'), { recursive: true })
  for (const [name, entry] of Object.entries(SCRIPT_ENTRIES))
    await writeFile(join(lib, 'sandbox', `${name}.cjs`), await bundleScript(from(join('src/sandbox', entry))))
  await bundleTranspiler(join(lib, 'sandbox/admission/transpiler'))
  await copyFile(from('wit/host-config.json'), join(directory, 'host-config.json'))
  await cp(from('src/authoring/templates'), join(lib, 'authoring/templates'), {
    recursive: true,
    // What a build of a template leaves there.
    filter: (path) => !/[/\\](?:node_modules|target|dist|__pycache__)$/.test(path),
  })
  // What components are built for.
  await mkdir(join(directory, 'wit'))
  await copyFile(from('wit/tool.wit'), join(directory, 'wit/tool.wit'))
  await mkdir(join(directory, 'bin'))
  await copyFile(join(import.meta.dirname, 'brain.js'), join(directory, 'bin/brain.js'))
  await chmod(join(directory, 'bin/brain.js'), 0o755)
  await writeFile(join(directory, 'THIRD-PARTY-LICENSES.txt'), await thirdPartyLicenses())
}

async function thirdPartyLicenses(): Promise<string> {
  const texts = BUNDLED.map(async (name) => {
    const directory = from(join('node_modules', name))
    const { version, license } = JSON.parse(await readFile(join(directory, 'package.json'), 'utf8')) as {
      version: string
      license: string
    }
    const text = await readFile(join(directory, 'LICENSE'), 'utf8')
    return `lib/sandbox holds code of ${name} ${version}, ${license}:\n\n${text.trim()}\n`
  })
  return (await Promise.all(texts)).join(`\n${'='.repeat(80)}\n\n`)
}

/** @returns the tarball, named after the package without its scope. */
async function pack(directory: string, dist: string): Promise<string> {
  const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', dist], {
    cwd: directory,
  })
  const listed: unknown = JSON.parse(stdout)
  const [packed] = (Array.isArray(listed) ? listed : Object.values(listed as object)) as { filename: string }[]
  if (packed === undefined) throw new Error(`Cannot pack ${directory}: npm named no file`)
  const tarball = join(dist, packed.filename.replace(/^aexhq-/, ''))
  await rename(join(dist, packed.filename), tarball)
  return tarball
}

async function main(dist: string): Promise<void> {
  const manifest = JSON.parse(await readFile(from('package.json'), 'utf8')) as RootManifest
  await rm(dist, { recursive: true, force: true })
  try {
    await Promise.all([buildClient(join(dist, 'brain'), manifest), buildServer(join(dist, 'brain-server'), manifest)])
  } finally {
    await stop()
  }
  for (const name of ['brain', 'brain-server']) {
    const tarball = await pack(join(dist, name), dist)
    const { size } = await stat(tarball)
    process.stdout.write(`${tarball} ${(size / 1024).toFixed(0)} KiB\n`)
  }
}

await main(process.argv[2] ?? from('dist'))
