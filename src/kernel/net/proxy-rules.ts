import { BlockList, isIP } from 'node:net'

/** A proxy, without what opens it in its URL. */
export type Proxy = {
  /** http or https: how the proxy itself is spoken to. */
  readonly url: URL
  /** The value of `Proxy-Authorization`; nobody else is ever sent it. */
  readonly authorization: string | undefined
}

/** Which requests go through which proxy. */
export type ProxyRules = {
  readonly http: Proxy | undefined
  readonly https: Proxy | undefined
  readonly isExempt: (url: URL) => boolean
}

/** The texts of HTTP_PROXY, HTTPS_PROXY and NO_PROXY; absent or empty = none. */
export type ProxyTexts = {
  readonly http?: string | undefined
  readonly https?: string | undefined
  readonly except?: string | undefined
}

/**
 * Reads proxies as they stand in the environment. Loopback goes through them too, unless it is exempt (contract A16).
 *
 * `except` lists what is reached directly: names, of which each stands for its subdomains as well, with or without a dot
 * before it; addresses, and ranges of them such as 10.0.0.0/8; each of these with a port, or for all ports; or `*`.
 *
 * @throws RangeError naming the variable, and never what it holds
 */
export const parseProxyRules = ({ http, https, except = '' }: ProxyTexts): ProxyRules => ({
  http: parseProxy('HTTP_PROXY', http),
  https: parseProxy('HTTPS_PROXY', https),
  isExempt: parseExemptions(except),
})

/** The proxy that a request to `url` goes through. */
export function proxyFor(rules: ProxyRules, url: URL): Proxy | undefined {
  const proxy = url.protocol === 'https:' ? rules.https : rules.http
  return proxy === undefined || rules.isExempt(url) ? undefined : proxy
}

/** The host of a URL as sockets and certificates know it. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '')

export const portOf = ({ port, protocol }: URL): number =>
  port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)

function parseProxy(variable: string, text: string | undefined): Proxy | undefined {
  if (text === undefined || text.trim() === '') return undefined
  const refuse = (reason: string): never => {
    throw new RangeError(`Cannot use ${variable}: ${reason}`)
  }
  // Many write just HOST:PORT.
  const url = URL.parse(text.includes('://') ? text : `http://${text}`)
  if (url === null) return refuse('it is no URL')
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    return refuse('only proxies that are spoken to over http or https are supported')
  const { username, password } = url
  const authorization = username === '' && password === '' ? undefined : basic(username, password, refuse)
  return { url: new URL(url.origin), authorization }
}

function basic(username: string, password: string, refuse: (reason: string) => never): string {
  try {
    return `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')}`
  } catch {
    return refuse('its user or password is not percent-encoded correctly')
  }
}

type Exemption = (host: string, port: number) => boolean

function parseExemptions(text: string): (url: URL) => boolean {
  const entries = text
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
  if (entries.includes('*')) return () => true
  const exemptions = entries.map(parseExemption)
  return (url) => exemptions.some((covers) => covers(hostOf(url), portOf(url)))
}

function parseExemption(entry: string): Exemption {
  const [, bracketed, plain = '', port] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(entry) ?? [undefined, entry]
  const host = (bracketed ?? plain).replace(/^\*?\./, '')
  const isPort = (actual: number): boolean => port === undefined || Number(port) === actual
  const subnet = subnetOf(host)
  if (subnet !== undefined) return (actual, actualPort) => isPort(actualPort) && subnet(actual)
  const domain = `.${host}`
  return (actual, actualPort) =>
    isPort(actualPort) && (actual === host || (isIP(actual) === 0 && host !== '' && actual.endsWith(domain)))
}

function subnetOf(host: string): ((address: string) => boolean) | undefined {
  const [address = '', bits = ''] = host.split('/')
  const most = isIP(address) === 4 ? 32 : 128
  if (isIP(address) === 0 || !/^\d{1,3}$/.test(bits) || Number(bits) > most) return undefined
  const list = new BlockList()
  list.addSubnet(address, Number(bits), most === 32 ? 'ipv4' : 'ipv6')
  return (actual) => isIP(actual) !== 0 && list.check(actual, isIP(actual) === 4 ? 'ipv4' : 'ipv6')
}
