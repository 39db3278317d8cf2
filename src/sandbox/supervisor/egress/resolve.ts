import type { LookupAddress } from 'node:dns'
import { lookup as lookupName } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { NetworkOrigin } from '../../../contract/network-origin.ts'
import { EgressFailure } from './egress-failure.ts'
import { isLoopbackAddress, isPublicAddress } from '../../../kernel/net/public-address.ts'

/** Asks the system for all addresses of a name. */
export type Lookup = (name: string) => Promise<readonly LookupAddress[]>

/** Holds a thread of this process until the system's resolver gives up (FairLookups). */
export const systemLookup: Lookup = (name) => lookupName(name, { all: true })

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
