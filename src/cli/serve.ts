import pino from 'pino'
import { composeBrain, type Brain } from '../compose.ts'
import { readConfig } from '../compose/read-config.ts'
import type { Config } from '../config/config.ts'
import type { Logger } from '../kernel/logger.ts'
import type { Environment } from './environment.ts'
import { rereadOnHangup } from './reread-on-hangup.ts'

/** How long running work may go on after SIGTERM. */
const GRACE_MS = 10_000

/**
 * Runs the server until it is told to stop (contract A1). Prints one line when it listens; logs go to stderr. A host
 * config is read again at SIGHUP.
 *
 * @throws ConfigError, BrainError when it cannot start
 */
export async function serve(env: Environment, hostConfig?: string): Promise<void> {
  const config = await readConfig(env, hostConfig)
  const logger = pino({ level: config.logLevel, base: null }, pino.destination({ fd: 2, sync: false }))
  const read = async (): Promise<Config> => warned(await readConfig(env, hostConfig), logger)
  const brain = await composeBrain(warned(config, logger), logger)
  try {
    await brain.app.listen({ host: config.listen.host, port: config.listen.port })
  } catch (error) {
    await brain[Symbol.asyncDispose]()
    throw error
  }
  if (hostConfig !== undefined) rereadOnHangup({ read, adopt: (settings) => brain.adopt(settings), logger })
  process.stdout.write(startLine(brain, config))
  await stopSignal()
  logger.info({}, 'stopping: no new work is taken')
  await brain.drain(GRACE_MS)
  await brain[Symbol.asyncDispose]()
}

function warned(config: Config, logger: Logger): Config {
  for (const warning of config.warnings) logger.warn({ warning }, 'a variable has no effect')
  return config
}

function startLine({ app, level }: Brain, config: Config): string {
  const address = app.server.address()
  const port = typeof address === 'object' && address !== null ? address.port : config.listen.port
  const host = config.listen.host.includes(':') ? `[${config.listen.host}]` : config.listen.host
  const unsafe = level.unsafe ? ' UNSAFE: components run with the flags of Node alone (BRAIN_ENV_UNSAFE=1)' : ''
  const remarks = level.remarks.length === 0 ? '' : ` (${level.remarks.join('; ')})`
  const bubblewrap = level.bubblewrap === undefined ? '' : ` ${level.bubblewrap.version}`
  const abi = level.landlockAbi > 0 ? ` (landlock ABI ${level.landlockAbi})` : ''
  return `brain listens on http://${host}:${port}, data in ${config.dataDirectory}, sandbox level ${level.name}${bubblewrap}${abi}${remarks}${unsafe}\n`
}

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve())
  })
}
