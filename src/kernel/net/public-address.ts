import { BlockList, isIPv4, isIPv6 } from 'node:net'

/** Not for everybody, or not one machine: IANA's special registries, and addresses at which clouds answer their guests. */
const SPECIAL_IPV4 = [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier NAT
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // Azure's host
  '169.254.0.0/16', // link-local, metadata of clouds
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
]

/**
 * All that is public has these three bits. Loopback, unspecified, mapped and NAT64 addresses, unique local ones (metadata
 * of a cloud among them), link-local and multicast have not.
 */
const GLOBAL_IPV6 = '2000::/3'
const SPECIAL_IPV6 = [
  '2001::/23', // Teredo and other protocols, which hold IPv4 addresses or none
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4, holds an IPv4 address
  '3fff::/20', // documentation
]

function listOf(subnets: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const subnet of subnets) {
    const [address = '', bits] = subnet.split('/')
    list.addSubnet(address, Number(bits), family)
  }
  return list
}

const specialIpv4 = listOf(SPECIAL_IPV4, 'ipv4')
const specialIpv6 = listOf(SPECIAL_IPV6, 'ipv6')
const globalIpv6 = listOf([GLOBAL_IPV6], 'ipv6')
const loopback = listOf(['127.0.0.0/8'], 'ipv4')

/** Whether an IP address is one machine on the public internet. Anything that is no plain address is not. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !specialIpv4.check(address, 'ipv4')
  if (!isIPv6(address) || address.includes('%')) return false
  return globalIpv6.check(address, 'ipv6') && !specialIpv6.check(address, 'ipv6')
}

export const isLoopbackAddress = (address: string): boolean =>
  address === '::1' || (isIPv4(address) && loopback.check(address, 'ipv4'))
