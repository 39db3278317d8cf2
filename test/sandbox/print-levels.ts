// Prints what a machine offers to the user and under the restrictions that this process has.
import { probeLevels } from '../../src/sandbox/level.ts'

process.stdout.write(JSON.stringify(await probeLevels()))
