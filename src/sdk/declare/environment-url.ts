import { clip } from '../../kernel/errors.ts'

const MOST_CHARACTERS = 2048
/** As URL prints them: `localhost` is a name, which may lead anywhere. */
const LITERAL_LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|\[::1\])$/

/**
 * The address of an environment in one spelling, without slashes at its end (contract 2.1).
 *
 * @param what starts the message
 * @throws TypeError for anything but https, or http to a literal loopback address, without credentials, query and
 * fragment, of at most 2048 characters
 */
export function environmentUrlOf(given: unknown, what: string): string {
  const text = given instanceof URL ? given.href : given
  if (typeof text !== 'string' || !URL.canParse(text))
    throw new TypeError(`${what} must be a URL such as https://environment.example`)
  const { protocol, hostname, username, password, href } = new URL(text)
  const shown = JSON.stringify(clip(text, 100))
  if (username !== '' || password !== '')
    throw new TypeError(`${what} must not hold a user or password: give the credential beside it`)
  if (/[?#]/.test(href)) throw new TypeError(`${what} must not have a query or fragment: ${shown}`)
  if (protocol !== 'https:' && !(protocol === 'http:' && LITERAL_LOOPBACK.test(hostname)))
    throw new TypeError(`${what} must be https, or http to a literal loopback address such as 127.0.0.1: ${shown}`)
  const url = href.replace(/\/+$/, '')
  if (url.length > MOST_CHARACTERS) throw new TypeError(`${what} must have at most ${MOST_CHARACTERS} characters`)
  return url
}
