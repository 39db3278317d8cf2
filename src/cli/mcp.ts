import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { BrainError, messageOf } from '../kernel/errors.ts'
import { parseSessionId } from '../kernel/ids.ts'
import { within } from '../kernel/within.ts'
import { openMcpServer } from '../mcp/open-mcp-server.ts'
import { openClientStreams } from './mcp/client-streams.ts'
import { McpEndpoint } from './mcp/mcp-endpoint.ts'
import { RemoteTools } from './mcp/remote-tools.ts'
import { printable } from './printable.ts'
import type { Environment } from './environment.ts'

export type McpOptions = { readonly url: string; readonly session: string }

/** How long the server may take to hear what was cancelled when the client goes away. */
const LAST_WORDS_MS = 2000

/**
 * Speaks MCP on standard input and output, for a session of a running server, until the client closes them.
 * @throws BrainError when there is no such server or session, or the token (BRAIN_API_TOKEN) is not its own
 */
export async function bridgeMcp(env: Environment, { url, session }: McpOptions): Promise<void> {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new BrainError(
      'invalid_request',
      `Cannot use --url ${JSON.stringify(url)}: it must begin with http:// or https://`,
    )
  const token = env['BRAIN_API_TOKEN']
  const tools = new RemoteTools(new McpEndpoint({ url, session: parseSessionId(session), token }))
  await tools.list() // what is wrong is said at once, where the client shows it
  const tellOperator = (error: unknown): void =>
    void process.stderr.write(`brain mcp: ${printable(messageOf(error))}\n`)
  const gone = clientGone()
  const { transport, sentArguments } = openClientStreams(process.stdin, process.stdout)
  const bridge = serveStdio(
    () =>
      openMcpServer(tools, {
        during: (_context, work) => work(new AbortController().signal),
        endsWithConnection: true,
        sentArguments,
        onDefect: tellOperator,
      }),
    { transport, maxSubscriptions: 0, onerror: tellOperator },
  )
  await gone
  await bridge.close()
  process.stdin.destroy() // it is still waited on when a signal ended this
  await within(tools.settled(), LAST_WORDS_MS)
}

function clientGone(): Promise<void> {
  return new Promise((resolve) => {
    process.stdin.once('end', resolve).once('close', resolve)
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve())
  })
}
