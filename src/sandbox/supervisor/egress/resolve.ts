import type { LookupAddress } from 'node:dns'
import { lookup as lookupName } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { NetworkOrigin } from '../../../contract/network-origin.ts'
import { Limiter } from '../../admission/limiter.ts'
import { EgressFailure } from './egress-failure.ts'
import { isLoopbackAddress, isPublicAddress } from './public-address.ts'

/** Asks the system for all addresses of a name. */
export type Lookup = (name: string) => Promise<readonly LookupAddress[]>

/** Node looks names up on four threads, which read files as well: slow names of one tool must leave some of them. */
const LOOKUPS_AT_ONCE = 2
const LOOKUPS_WAITING = 256
const lookups = new Limiter(LOOKUPS_AT_ONCE, LOOKUPS_WAITING)

export const systemLookup: Lookup = (name) =>
  lookups.run(
    () => lookupName(name, { all: true }),
    () => new EgressFailure('DNS-timeout'),
  )

const prohibited = (): never => {
  throw new EgressFailure('destination-IP-prohibited')
}

/**
 * The addresses to connect to: looked up once, all of them checked. An address that is itself the granted host, and
 * `localhost`, were named by the operator: they are what they say. Any other name must be public through and through.
 * @throws EgressFailure `DNS-error`, `destination-IP-prohibited`
 */
export async function resolveChecked({ host }: NetworkOrigin, lookup: Lookup): Promise<readonly LookupAddress[]> {
  const family = isIP(host)
  if (family !== 0) return [{ address: host, family }]
  const addresses = await lookup(host).catch((error: unknown) => {
    if (error instanceof EgressFailure) throw error
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    throw new EgressFailure('DNS-error', code)
  })
  if (addresses.length === 0) throw new EgressFailure('DNS-error', 'ENODATA')
  const isFit = host === 'localhost' ? isLoopbackAddress : isPublicAddress
  return addresses.every(({ address }) => isFit(address)) ? addresses : prohibited()
}
