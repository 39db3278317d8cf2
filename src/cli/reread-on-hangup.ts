import { messageOf } from '../kernel/errors.ts'
import type { Logger } from '../kernel/logger.ts'
import { type Config, ConfigError, type HostSettings } from '../config/config.ts'

export type Rereading = {
  /** Reads the whole configuration again. @throws ConfigError */
  readonly read: () => Promise<Config>
  readonly adopt: (settings: HostSettings) => void
  readonly logger: Logger
}

/**
 * Reads the host config again at each SIGHUP (contract A4, A16). What cannot be used changes nothing, and is told to the
 * log. Signals that come while a file is read are one more reading after it, so that the last change always counts.
 */
export function rereadOnHangup({ read, adopt, logger }: Rereading): void {
  let isWanted = false
  let isReading = false
  const reread = async (): Promise<void> => {
    try {
      const config = await read()
      adopt(config)
      const facts = { tenants: config.tenants.length, tools: config.toolServices.size }
      logger.info(facts, 'the host config was read again')
    } catch (error) {
      const problems = error instanceof ConfigError ? error.problems : [messageOf(error)]
      logger.error({ problems }, 'cannot use the host config that was read again: the one before stays')
    }
  }
  process.on('SIGHUP', () => {
    isWanted = true
    if (isReading) return
    isReading = true
    void (async () => {
      while (isWanted) {
        isWanted = false
        await reread()
      }
      isReading = false
    })()
  })
}
