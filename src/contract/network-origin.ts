/** An origin in its one canonical form; with `subdomains` every real subdomain of `host` instead of `host` itself. */
export type NetworkOrigin = {
  readonly scheme: 'http' | 'https'
  /** Lower case, punycode, no final dot; an IPv6 address has no brackets. */
  readonly host: string
  readonly port: number
  readonly subdomains: boolean
}

const DEFAULT_PORT = { http: 80, https: 443 } as const
const MOST_HOST_CHARACTERS = 253

/** Of hosts as URL prints them: four decimal numbers are an address there, and only addresses have colons. */
const isIPv4 = (host: string): boolean => /^\d+(?:\.\d+){3}$/.test(host)
const isAddress = (host: string): boolean => isIPv4(host) || host.includes(':')

/** What a URL could read as something else than a host and a port: users, zones, escapes, paths, backslashes, blanks. */
const AUTHORITY = /^(\[[0-9a-f:.]+\]|[^\s/?#@\\%:[\]*]+)(?::(\d{1,5}))?$/iu
const ORIGIN = /^(https?):\/\/(\*\.)?(.*)$/isu

/**
 * Reads `host[:port]`. Every place that names a server goes through here, so that all of them mean the same one.
 * @returns undefined for what is not one host, and for IPv4 addresses that are not four decimal numbers
 */
export function parseAuthority(scheme: 'http' | 'https', authority: string): NetworkOrigin | undefined {
  const match = AUTHORITY.exec(authority)
  const name = match?.[1]?.replace(/\.$/, '') ?? ''
  const port = match?.[2] === undefined ? DEFAULT_PORT[scheme] : Number(match[2])
  if (port < 1 || port > 65_535 || !URL.canParse(`http://${name}`)) return undefined
  const host = new URL(`http://${name}`).hostname.replace(/^\[|\]$/g, '')
  if (host.length > MOST_HOST_CHARACTERS || host.split('.').includes('')) return undefined
  // 0177.1, 0x7f.1, 2130706433 and full-width digits are 127.0.0.1 to some readers only.
  if (isIPv4(host) && host !== name) return undefined
  return { scheme, host, port, subdomains: false }
}

/**
 * Reads `scheme://host[:port]` or `scheme://*.domain[:port]`, http and https only.
 * @returns undefined for anything else
 */
export function parseOrigin(text: string): NetworkOrigin | undefined {
  const match = ORIGIN.exec(text)
  const origin = match && parseAuthority(match[1]?.toLowerCase() === 'http' ? 'http' : 'https', match[3] ?? '')
  if (!origin) return undefined
  const subdomains = match[2] !== undefined
  return subdomains && isAddress(origin.host) ? undefined : { ...origin, subdomains }
}

/** Whether whoever may reach `allowed` may reach `wanted`: the same origin, or real subdomains of a `*.` entry. */
export function covers(allowed: NetworkOrigin, wanted: NetworkOrigin): boolean {
  if (allowed.scheme !== wanted.scheme || allowed.port !== wanted.port) return false
  if (allowed.host === wanted.host) return allowed.subdomains === wanted.subdomains
  return allowed.subdomains && wanted.host.endsWith(`.${allowed.host}`)
}

/** `host` or `host:port`, as a Host header has it. */
export function authorityOf({ scheme, host, port }: NetworkOrigin): string {
  const name = host.includes(':') ? `[${host}]` : host
  return port === DEFAULT_PORT[scheme] ? name : `${name}:${port}`
}
