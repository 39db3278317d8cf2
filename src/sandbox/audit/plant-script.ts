import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ComponentId } from '../../kernel/ids.ts'
import {
  artifactDirectory,
  componentDirectory,
  componentFile,
  MANIFEST_FILE,
  printManifest,
  SCRIPT_FILE,
  sha256,
} from '../admission/artifact.ts'

/** Puts JavaScript where admission would put what it made of a component. */
export async function plantScript(data: string, script: string): Promise<ComponentId> {
  const js = Buffer.from(script)
  const digest = sha256(js)
  const id = digest as ComponentId
  await mkdir(artifactDirectory(data, id), { recursive: true })
  await mkdir(componentDirectory(data, id), { recursive: true })
  await writeFile(componentFile(data, id), js)
  await writeFile(join(artifactDirectory(data, id), SCRIPT_FILE), js)
  const manifest = printManifest({ component: id, js: { sha256: digest, size: js.length }, cores: [] })
  await writeFile(join(artifactDirectory(data, id), MANIFEST_FILE), manifest)
  return id
}
