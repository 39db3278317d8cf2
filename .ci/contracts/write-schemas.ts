// Writes wit/session.json and wit/host-config.json; test/unit/contract holds that they are up to date.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hostConfigJsonSchema } from './host-config-schema.ts'
import { sessionSchema } from './session-schema.ts'

const wit = join(import.meta.dirname, '../../wit')
for (const [name, schema] of Object.entries({ session: sessionSchema(), 'host-config': hostConfigJsonSchema() }))
  await writeFile(join(wit, `${name}.json`), `${JSON.stringify(schema, null, 2)}\n`)
