import { isIP } from 'node:net'
import { BrainError } from '../../kernel/errors.ts'
import { isLoopbackAddress, isPublicAddress } from '../../kernel/net/public-address.ts'
import { covers, type NetworkOrigin, parseOrigin } from '../../contract/network-origin.ts'

export type EnvironmentUrlRules = {
  /** BRAIN_ENVIRONMENT_URL_ALLOW; undefined = the default (contract A26). */
  readonly allow: readonly NetworkOrigin[] | undefined
  /** Whether the server is one person's: it listens on loopback. */
  readonly isLocal: boolean
}

/** Whether an address that is connected to is fit. */
export type IsFit = (address: string) => boolean

const MOST_URL_CHARACTERS = 2048

/** Which environments a session may name, and where their names may lead (contract 2.1, A26). */
export class EnvironmentUrls {
  readonly #rules: EnvironmentUrlRules

  constructor(rules: EnvironmentUrlRules) {
    this.#rules = rules
  }

  /** @throws BrainError `invalid_request` saying why an environment cannot be at this URL. */
  check(name: string, text: string): void {
    const refuse = (reason: string): never => {
      throw new BrainError('invalid_request', `Cannot use the url of environment "${name}": ${reason}`)
    }
    const { isFit } = this.#read(text, refuse)
    const host = hostOf(new URL(text))
    if (isIP(host) !== 0 && !isFit(host))
      refuse(
        `${host} is not a public address, and this server connects to no other${this.#rules.isLocal ? ' but loopback' : ''}; the operator may list it in BRAIN_ENVIRONMENT_URL_ALLOW`,
      )
  }

  /**
   * Rules may have changed since the session was made.
   * @throws BrainError `invalid_request`
   */
  open(text: string): { readonly url: URL; readonly isFit: IsFit } {
    return this.#read(text, (reason) => {
      throw new BrainError('invalid_request', `Cannot use the url of the environment: ${reason}`)
    })
  }

  #read(text: string, refuse: (reason: string) => never): { readonly url: URL; readonly isFit: IsFit } {
    if (text.length > MOST_URL_CHARACTERS) refuse(`it is longer than ${MOST_URL_CHARACTERS} characters`)
    if (!URL.canParse(text)) return refuse('it is no URL')
    const url = new URL(text)
    const scheme = url.protocol.slice(0, -1)
    if (scheme !== 'https' && scheme !== 'http') return refuse('it must be https')
    if (url.username !== '' || url.password !== '')
      refuse('it must hold no user or password; give `credential` instead')
    if (/[?#]/.test(text)) refuse('it must have neither query nor fragment')
    const host = hostOf(url)
    if (scheme === 'http' && !isLoopbackAddress(host))
      refuse('http is for a literal loopback address only, such as http://127.0.0.1:9000; use https')
    // What two readers may take for two hosts is refused, as everywhere (parseOrigin).
    const origin = parseOrigin(url.origin)
    if (origin === undefined || !isPlainlyWritten(text, url)) return refuse('its host is not plainly written')
    return { url, isFit: this.#fitFor(origin, refuse) }
  }

  #fitFor(origin: NetworkOrigin, refuse: (reason: string) => never): IsFit {
    const { allow, isLocal } = this.#rules
    if (allow === undefined)
      return isLocal && isIP(origin.host) !== 0 && isLoopbackAddress(origin.host) ? isLoopbackAddress : isPublicAddress
    const entries = allow.filter((allowed) => covers(allowed, origin))
    if (entries.length === 0) return refuse('it is not within BRAIN_ENVIRONMENT_URL_ALLOW of this server')
    // The operator has named this very host, wherever it is; of a whole domain somebody else may point names anywhere.
    return entries.some(({ subdomains }) => !subdomains) ? () => true : isPublicAddress
  }
}

const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '')

/** 0x7f.1, 2130706433 and full-width digits are 127.0.0.1 to some readers only, and what a backslash is they do not agree. */
function isPlainlyWritten(text: string, { hostname }: URL): boolean {
  const authority = /^https?:\/\/([^\s\\]+)$/i.exec(text)?.[1]?.toLowerCase()
  return authority !== undefined && (isIP(hostname) !== 4 || authority.startsWith(hostname))
}
