import { type LocalBrain, type LocalConfig, openLocalBrain } from '../../compose/local-brain.ts'
import type { Environment } from '../environment.ts'
import { cacheDirectoryOf } from './cache-directory.ts'
import { noteWarnings, type Outputs } from './command-outputs.ts'

/**
 * The Brain of one command, with the cache of its user.
 * @throws as {@link openLocalBrain}
 */
export const openBrain = (env: Environment, config: LocalConfig, outputs: Outputs): Promise<LocalBrain> =>
  openLocalBrain({ config, cacheDirectory: cacheDirectoryOf(env), logger: noteWarnings(outputs) })
