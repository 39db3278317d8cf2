import type { LookupAddress } from 'node:dns'
import { connect as connectPlain, isIP, type LookupFunction, type Socket } from 'node:net'
import { connect as connectSecure } from 'node:tls'
import type { NetworkOrigin } from '../../../contract/network-origin.ts'

/** What the parser holds of a body that nobody reads: a hostile server sends it in pieces of a byte. */
const HELD_BYTES = 16 * 1024

/**
 * Connects to one of the addresses that were checked, whatever the name means by now, as the name that was granted.
 * @param onOpen called once, when TLS, where there is some, has checked the server's certificate for that name
 */
export function openSocket(
  { scheme, host, port }: NetworkOrigin,
  addresses: readonly LookupAddress[],
  onOpen: (socket: Socket) => void,
): Socket {
  const lookup: LookupFunction = (_name, { all }, callback) => {
    const [first] = addresses
    if (all === true) callback(null, [...addresses])
    else callback(null, first?.address ?? '', first?.family)
  }
  const target = { host, port, lookup, highWaterMark: HELD_BYTES }
  if (scheme === 'http') {
    const socket = connectPlain(target)
    return socket.once('connect', () => onOpen(socket))
  }
  const servername = isIP(host) === 0 ? host : ''
  const socket = connectSecure({ ...target, servername, ALPNProtocols: ['http/1.1'], rejectUnauthorized: true })
  return socket.once('secureConnect', () => onOpen(socket))
}
