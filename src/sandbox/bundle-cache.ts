import { createHash, randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** All that the scripts of the sandbox are made of (architecture: it imports no other room), and what makes them. */
const SOURCES = ['./', '../contract/', '../kernel/', '../../package-lock.json']
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/brain/scripts/', import.meta.url))

/**
 * What was bundled from the same sources before, by this checkout. Bundling takes more processor time than everything else
 * that a server does at its start.
 *
 * @param name of the bundle, which has as many files each time
 */
export async function bundledOnce(name: string, bundle: () => Promise<readonly Buffer[]>): Promise<readonly Buffer[]> {
  const directory = join(CACHE, `${name}-${await stateOfSources()}`)
  const kept = await readFiles(directory)
  if (kept !== undefined) return kept
  const made = await bundle()
  // Where the checkout cannot be written to, the next start bundles again.
  await keep(directory, name, made).catch(() => undefined)
  return made
}

/** Sizes and times of all sources, and which Node runs. */
async function stateOfSources(): Promise<string> {
  const digest = createHash('sha256').update(process.version)
  const paths = await Promise.all(SOURCES.map((source) => filesOf(fileURLToPath(new URL(source, import.meta.url)))))
  const facts = await Promise.all(
    paths.flat().map(async (path) => {
      const { size, mtimeMs } = await stat(path)
      return `${path} ${size} ${mtimeMs}\n`
    }),
  )
  for (const fact of facts.toSorted((a, b) => (a < b ? -1 : 1))) digest.update(fact)
  return digest.digest('hex').slice(0, 32)
}

async function filesOf(path: string): Promise<string[]> {
  if (!path.endsWith('/')) return [path]
  const entries = await readdir(path, { recursive: true, withFileTypes: true })
  return entries.flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : []))
}

async function readFiles(directory: string): Promise<readonly Buffer[] | undefined> {
  try {
    const count = Number(await readFile(join(directory, 'count'), 'utf8'))
    return await Promise.all(Array.from({ length: count }, (_, index) => readFile(join(directory, String(index)))))
  } catch {
    return undefined
  }
}

async function keep(directory: string, name: string, files: readonly Buffer[]): Promise<void> {
  const aside = `${directory}.${randomUUID()}`
  await mkdir(aside, { recursive: true })
  await Promise.all(files.map((file, index) => writeFile(join(aside, String(index)), file)))
  await writeFile(join(aside, 'count'), String(files.length))
  const older = (await readdir(CACHE)).filter(
    (entry) => entry.startsWith(`${name}-`) && !join(CACHE, entry).startsWith(directory),
  )
  try {
    // What is there cannot be read whole.
    await rm(directory, { recursive: true, force: true })
    await rename(aside, directory)
  } finally {
    await rm(aside, { recursive: true, force: true })
  }
  for (const entry of older) await rm(join(CACHE, entry), { recursive: true, force: true })
}
