import { mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BrainError } from '../../../src/kernel/errors.ts'
import type { ComponentId } from '../../../src/kernel/ids.ts'
import {
  artifactDirectory,
  componentFile,
  MANIFEST_FILE,
  parseManifest,
  printManifest,
  readArtifact,
  SCRIPT_FILE,
  sha256,
  TOOLCHAIN,
  type ArtifactManifest,
} from '../../../src/sandbox/admission/artifact.ts'

const upload = Buffer.from('0123456789 the whole upload')
const js = Buffer.from('export function instantiate() {}')
const made = Buffer.from('a core that was made')
const id = sha256(upload) as ComponentId
const manifest: ArtifactManifest = {
  component: id,
  js: { sha256: sha256(js), size: js.length },
  cores: [
    { name: 'tool.core.wasm', sha256: sha256(upload.subarray(3, 8)), size: 5, offset: 3 },
    { name: 'tool.core2.wasm', sha256: sha256(made), size: made.length, file: 'core-1.wasm' },
  ],
}

let data: string
beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), 'brain-artifact-'))
  const directory = artifactDirectory(data, id)
  await mkdir(directory, { recursive: true })
  await mkdir(dirname(componentFile(data, id)), { recursive: true })
  await writeFile(componentFile(data, id), upload)
  await writeFile(join(directory, SCRIPT_FILE), js)
  await writeFile(join(directory, 'core-1.wasm'), made)
  await writeFile(join(directory, MANIFEST_FILE), printManifest(manifest))
})
afterEach(async () => await rm(data, { recursive: true }))

const files = () => ({
  manifest: join(artifactDirectory(data, id), MANIFEST_FILE),
  script: join(artifactDirectory(data, id), SCRIPT_FILE),
  core: join(artifactDirectory(data, id), 'core-1.wasm'),
  upload: componentFile(data, id),
})

async function expectRefusal(reason: RegExp): Promise<void> {
  const error: unknown = await readArtifact(data, id).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(BrainError)
  expect(error).toMatchObject({ code: 'environment_not_ready', message: expect.stringMatching(reason) })
}

describe('readArtifact()', () => {
  test('answers the script and the cores, slices of the upload and own files alike', async () => {
    const artifact = await readArtifact(data, id)
    expect(artifact.js.equals(js)).toBe(true)
    expect(artifact.cores.map(({ name, bytes }) => [name, bytes.toString()])).toEqual([
      ['tool.core.wasm', '34567'],
      ['tool.core2.wasm', 'a core that was made'],
    ])
  })

  test.each(['manifest', 'script', 'core'] as const)('refuses any flipped byte of the %s', async (which) => {
    const path = files()[which]
    const bytes = await readFile(path)
    for (let at = 0; at < bytes.length; at++) {
      const damaged = Buffer.from(bytes)
      damaged[at]! ^= 0x20
      await writeFile(path, damaged)
      await expectRefusal(/damaged/)
    }
  })

  test('refuses a slice of the upload that changed, and does not mind the rest of it', async () => {
    await writeFile(files().upload, Buffer.from('X12345678X'))
    expect((await readArtifact(data, id)).cores).toHaveLength(2)
    await writeFile(files().upload, Buffer.from('012X456789'))
    await expectRefusal(/content is damaged/)
  })

  test.each(['manifest', 'script', 'core', 'upload'] as const)(
    'refuses a %s that is missing, short or a link',
    async (which) => {
      const path = files()[which]
      const bytes = await readFile(path)
      await writeFile(path, bytes.subarray(0, 4))
      await expectRefusal(/size|damaged/)
      await rm(path)
      await expectRefusal(/ENOENT/)
      await writeFile(`${path}.elsewhere`, bytes)
      await symlink(`${path}.elsewhere`, path)
      await expectRefusal(/ELOOP/)
      await rm(path)
      await rename(`${path}.elsewhere`, path)
      expect((await readArtifact(data, id)).js.equals(js)).toBe(true)
    },
  )

  test('refuses a manifest of another component', async () => {
    const other = { ...manifest, component: sha256(Buffer.from('other')) as ComponentId }
    await writeFile(files().manifest, printManifest(other))
    await expectRefusal(/another component/)
  })
})

describe('parseManifest()', () => {
  const sealed = (body: object) => {
    const text = Buffer.from(JSON.stringify({ format: 1, toolchain: TOOLCHAIN, ...body }))
    return Buffer.concat([Buffer.from(`${sha256(text)}\n`), text])
  }

  test('reads what printManifest() prints', () => {
    expect(parseManifest(printManifest(manifest), id)).toEqual(manifest)
  })

  test.each([
    ['another format', { ...manifest, format: 2 }],
    ['another toolchain', { ...manifest, toolchain: 'jco-1' }],
    ['a core outside', { ...manifest, cores: [{ ...manifest.cores[0], offset: -1 }] }],
    ['a file outside', { ...manifest, cores: [{ ...manifest.cores[1], file: '../core-1.wasm' }] }],
    ['a name with a slash', { ...manifest, cores: [{ ...manifest.cores[0], name: 'a/b' }] }],
    ['no script', { ...manifest, js: undefined }],
  ])('refuses %s even when its digest is right', (_what, body) => {
    expect(() => parseManifest(sealed(body), id)).toThrow(/its manifest/)
  })
})

test('TOOLCHAIN names the jco that is installed', async () => {
  const entry = import.meta.resolve('@bytecodealliance/jco-transpile/component')
  const description = JSON.parse(await readFile(new URL('../package.json', entry), 'utf8')) as { version: string }
  expect(TOOLCHAIN).toBe(`jco-transpile-${description.version}-4`)
})
