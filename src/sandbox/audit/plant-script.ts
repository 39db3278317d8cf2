import { mkdirSync, writeFileSync } from 'node:fs'
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

/** Puts JavaScript, and cores by their names, where admission would put what it made of a component. */
export function plantScript(
  data: string,
  script: string,
  cores: Readonly<Record<string, Uint8Array>> = {},
): ComponentId {
  const js = Buffer.from(script)
  const upload = Buffer.concat([js, ...Object.values(cores)])
  const id = sha256(upload) as ComponentId
  mkdirSync(artifactDirectory(data, id), { recursive: true })
  mkdirSync(componentDirectory(data, id), { recursive: true })
  writeFileSync(componentFile(data, id), upload)
  writeFileSync(join(artifactDirectory(data, id), SCRIPT_FILE), js)
  let offset = js.length
  const manifest = printManifest({
    component: id,
    js: { sha256: sha256(js), size: js.length },
    cores: Object.entries(cores).map(([name, bytes]) => {
      const core = { name, sha256: sha256(bytes), size: bytes.length, offset }
      offset += bytes.length
      return core
    }),
  })
  writeFileSync(join(artifactDirectory(data, id), MANIFEST_FILE), manifest)
  return id
}
