import type { Environment } from './environment.ts'

const DEFAULT_DATA_DIRECTORY = 'brain-data'

/** The data directory that a command is about, as the server would choose it. */
export const dataDirectoryOf = (env: Environment, option: string | undefined): string =>
  option ?? env['BRAIN_DATA_DIR'] ?? DEFAULT_DATA_DIRECTORY
