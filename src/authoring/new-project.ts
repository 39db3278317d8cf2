import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { extname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

export const TEMPLATES = ['rust', 'python', 'typescript'] as const
export type Template = (typeof TEMPLATES)[number]

/** Names that every API of models takes (contract A22), and that can be names of crates and modules. */
const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/

const isCheckout = extname(import.meta.filename) === '.ts'
const beside = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

export type NewProjectOptions = {
  /** Where the project's folder is made. */
  readonly directory: string
  /** The version of the packages that it depends on. */
  readonly version: string
  /** A folder with the packages instead of the published ones; default: this checkout, if there is one. */
  readonly packages?: string | undefined
}

export type NewProject = {
  /** Absolute. */
  readonly directory: string
  /** Paths in it. */
  readonly files: readonly string[]
  /** The folder of a checkout in which `npm run build` has yet to make the package that the project installs. */
  readonly unbuilt?: string
}

type Source = {
  readonly published: (version: string) => string
  readonly local: (folder: string, version: string) => string
}

const tarball = (folder: string, version: string): string => join(folder, 'dist', `brain-${version}.tgz`)

/** Where a project gets the package of its language, as its manifest writes it. */
const SOURCES: Readonly<Record<Template, Source>> = {
  rust: {
    published: (version) => JSON.stringify(version),
    local: (folder) => `{ path = ${JSON.stringify(join(folder, 'examples-rust/brain-tool'))} }`,
  },
  python: {
    published: (version) => `brain-patterns>=${version}`,
    local: (folder) => `brain-patterns @ ${pathToFileURL(join(folder, 'examples-python/brain-patterns')).href}`,
  },
  typescript: {
    published: (version) => `^${version}`,
    local: (folder, version) => `file:${tarball(folder, version)}`,
  },
}

/**
 * Makes a project with one tool, its tests and its cases, in a new folder `name`.
 *
 * @throws Error for a name that is not usable, and for a folder that has something in it
 */
export async function newProject(template: Template, name: string, options: NewProjectOptions): Promise<NewProject> {
  const what = `Cannot make ${JSON.stringify(name)}`
  if (!NAME.test(name))
    throw new Error(`${what}: a name begins with a letter and has at most 64 of the characters A-Z a-z 0-9 _ -`)
  const directory = resolve(options.directory, name)
  const found = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw new Error(`${what}: ${error.code === 'ENOTDIR' ? 'there is a file of this name' : error.message}`, {
      cause: error,
    })
  })
  if (found.length > 0) throw new Error(`${what}: the folder is there already, and not empty. Choose another name`)
  const folder = options.packages === undefined ? (isCheckout ? beside('../..') : undefined) : resolve(options.packages)
  const values = {
    name,
    name_snake: name.replaceAll('-', '_').toLowerCase(),
    ...(await packageValues(template, options, folder)),
  }
  const files = await filesOf(beside(`templates/${template}`))
  for (const { path, text } of files) {
    await mkdir(join(directory, path, '..'), { recursive: true })
    await writeFile(join(directory, path), filled(text, values), { flag: 'wx' })
  }
  const isUnbuilt =
    folder !== undefined && template === 'typescript' && !(await isThere(tarball(folder, options.version)))
  return { directory, files: files.map(({ path }) => path), ...(isUnbuilt ? { unbuilt: folder } : {}) }
}

const isThere = async (path: string): Promise<boolean> => (await stat(path).catch(() => undefined)) !== undefined

async function packageValues(
  template: Template,
  { version }: NewProjectOptions,
  folder: string | undefined,
): Promise<{ version: string; package_source: string }> {
  const { published, local } = SOURCES[template]
  if (folder === undefined) return { version, package_source: published(version) }
  if ((await stat(folder).catch(() => undefined))?.isDirectory() !== true)
    throw new Error(`Cannot take packages from ${JSON.stringify(folder)}: there is no such folder`)
  return { version, package_source: local(folder, version) }
}

type File = { readonly path: string; readonly text: string }

/** npm would leave out a file of this name. */
const GITIGNORE = 'gitignore'

/** What a build or an editor may have left in a template is none of it. */
const LEFT = /(?:^|\/)(?:node_modules|target|dist|__pycache__|\.[^/]+)(?:\/|$)/

async function filesOf(folder: string): Promise<readonly File[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch((cause: unknown) => {
    throw new Error(`Cannot read the template in ${JSON.stringify(folder)}: it is not part of this version`, { cause })
  })
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((path) => !LEFT.test(path))
    .toSorted()
  return Promise.all(
    paths.map(async (path) => ({
      path: path === GITIGNORE ? `.${GITIGNORE}` : path,
      text: await readFile(join(folder, path), 'utf8'),
    })),
  )
}

const filled = (text: string, values: Readonly<Record<string, string>>): string =>
  text.replace(/\{\{(\w+)\}\}/g, (whole, key: string) => values[key] ?? whole)
