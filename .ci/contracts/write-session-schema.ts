// Writes wit/session.json; test/unit/contract holds that it is up to date.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sessionSchema } from './session-schema.ts'

await writeFile(join(import.meta.dirname, '../../wit/session.json'), `${JSON.stringify(sessionSchema(), null, 2)}\n`)
