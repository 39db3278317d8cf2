import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { lookUp } from '../../kernel/net/lookups.ts'
import { hostOf, portOf, type Proxy } from '../../kernel/net/proxy-rules.ts'
import { CallFailure } from './failures.ts'

/** Where connections lead, and through what. */
export type Target = { readonly url: URL; readonly proxy: Proxy | undefined }

const isSecure = ({ protocol }: URL): boolean => protocol === 'https:'

/** Whether requests are for the proxy to pass on; what goes through a tunnel is not its to read. */
export const isPassedOn = ({ url, proxy }: Target): boolean => proxy !== undefined && !isSecure(url)

/**
 * A connection over which a request can be sent: to the service, through a tunnel to it, or to the proxy that passes
 * requests on. `signal` gives it up, and its socket with it.
 *
 * @throws CallFailure whose message says what failed, and not where
 */
export async function openConnection({ url, proxy }: Target, signal: AbortSignal): Promise<Socket> {
  if (proxy === undefined) return reach(url, 'connection', signal)
  const transport = await reach(proxy.url, 'connection to its proxy', signal)
  if (!isSecure(url)) return transport
  return secured(await tunnelled(url, proxy, { transport, signal }), url, signal)
}

async function reach(url: URL, what: string, signal: AbortSignal): Promise<Socket> {
  const socket = connect({ host: hostOf(url), port: portOf(url), lookup: lookupFor(signal), noDelay: true })
  const plain = await ready(socket, 'connect', { what: `no ${what}`, signal })
  return isSecure(url) ? secured(plain, url, signal) : plain
}

function secured(transport: Socket, url: URL, signal: AbortSignal): Promise<Socket> {
  const host = hostOf(url)
  const servername = isIP(host) === 0 ? { servername: host } : {}
  const socket = connectSecurely({ socket: transport, host, ALPNProtocols: ['http/1.1'], ...servername })
  return ready(socket, 'secureConnect', { what: 'its TLS is not accepted', signal })
}

type Tunnelling = { readonly transport: Socket; readonly signal: AbortSignal }

async function tunnelled(url: URL, proxy: Proxy, { transport, signal }: Tunnelling): Promise<Socket> {
  const authority = `${url.hostname}:${portOf(url)}`
  const { authorization } = proxy
  const request = httpRequest({
    method: 'CONNECT',
    path: authority,
    headers: { host: authority, ...(authorization === undefined ? {} : { 'proxy-authorization': authorization }) },
    createConnection: () => transport,
  })
  const what = 'its proxy opens no tunnel'
  await abortable(transport, signal, what, async () => {
    const answer = once(request, 'connect') as Promise<[IncomingMessage, Socket, Buffer]>
    request.end()
    const [{ statusCode }, , head] = await answer
    if (statusCode !== 200) throw new CallFailure('refusal', `its proxy refuses it with HTTP ${statusCode}`)
    if (head.length > 0) transport.unshift(head)
  })
  return transport
}

type Readiness = { readonly what: string; readonly signal: AbortSignal }

async function ready(socket: Socket, event: 'connect' | 'secureConnect', { what, signal }: Readiness): Promise<Socket> {
  // An error that comes when nobody waits for one must not end the server; that the socket is destroyed is enough.
  socket.on('error', () => undefined)
  await abortable(socket, signal, what, () => once(socket, event))
  return socket
}

/** Waits for a step of a connection; the socket does not outlive its failure. */
async function abortable(
  socket: Socket,
  signal: AbortSignal,
  what: string,
  step: () => Promise<unknown>,
): Promise<void> {
  const giveUp = (): void => void socket.destroy(new Error('given up'))
  signal.addEventListener('abort', giveUp, { once: true })
  try {
    signal.throwIfAborted()
    await step()
    signal.throwIfAborted()
  } catch (cause) {
    socket.destroy()
    throw cause instanceof CallFailure ? cause : new CallFailure('reset', `${what}${codeOf(cause)}`, { cause })
  } finally {
    signal.removeEventListener('abort', giveUp)
  }
}

/** Node's words name addresses and hosts, which are the operator's to know; its codes name none. */
export function codeOf(cause: unknown): string {
  const code = (cause as NodeJS.ErrnoException | undefined)?.code
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{0,63}$/.test(code) ? ` (${code})` : ''
}

const lookupFor =
  (signal: AbortSignal): LookupFunction =>
  (name, { all }, callback) =>
    void lookUp(name, signal).then(
      (addresses) => {
        const [first] = addresses
        if (all === true) callback(null, [...addresses])
        else callback(null, first?.address ?? '', first?.family)
      },
      (error: NodeJS.ErrnoException) => callback(error, []),
    )
