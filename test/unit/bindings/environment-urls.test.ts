import { describe, expect, it } from 'vitest'
import { EnvironmentUrls } from '../../../src/bindings/environment/environment-urls.ts'
import { parseOrigin } from '../../../src/contract/network-origin.ts'

const allow = (...texts: string[]) =>
  texts.map((text) => parseOrigin(text) ?? expect.unreachable(`${text} is no origin`))
const local = new EnvironmentUrls({ allow: undefined, isLocal: true })
const served = new EnvironmentUrls({ allow: undefined, isLocal: false })
const listed = new EnvironmentUrls({
  allow: allow('https://env.internal', 'https://*.partner.example', 'http://127.0.0.1:9000', 'https://10.1.2.3'),
  isLocal: false,
})

/** Addresses that nothing on the public internet has, in every form of contract A26. */
const PRIVATE = ['10.0.0.1', '172.16.0.1', '192.168.1.1', '169.254.169.254', '100.64.0.1', '0.0.0.0', '224.0.0.1']
const PRIVATE_IPV6 = [
  '::',
  'fd00::1',
  'fe80::1',
  'ff02::1',
  '::ffff:10.0.0.1',
  '64:ff9b::a00:1',
  '2002:a00:1::',
  '::ffff:127.0.0.1',
]

describe('urls of environments', () => {
  it('are public, or loopback as such where the server is one person’s', () => {
    for (const url of ['https://env.example', 'https://env.example:8443/base/', 'https://8.8.8.8/'])
      for (const urls of [local, served]) expect(() => urls.check('e', url)).not.toThrow()
    for (const url of ['http://127.0.0.1:9', 'https://127.1.2.3/', 'http://[::1]:9/x']) {
      expect(() => local.check('e', url)).not.toThrow()
      expect(() => served.check('e', url)).toThrow('not a public address')
    }
    for (const host of [...PRIVATE, ...PRIVATE_IPV6.map((one) => `[${one}]`)])
      for (const urls of [local, served]) expect(() => urls.check('e', `https://${host}/`)).toThrow('public address')
  })

  it('lead nowhere but there, whatever a name means when it is connected to', () => {
    const { isFit } = local.open('https://rebound.example')
    expect(isFit('8.8.8.8')).toBe(true)
    for (const address of [...PRIVATE, ...PRIVATE_IPV6, '127.0.0.1', '::1']) expect(isFit(address)).toBe(false)
    // A literal address is where it says, and a name for it is none.
    expect(local.open('http://127.0.0.1:9').isFit('8.8.8.8')).toBe(false)
    expect(local.open('https://localhost').isFit('127.0.0.1')).toBe(false)
  })

  it('are within the list where there is one, and nowhere else', () => {
    for (const url of [
      'https://env.internal/x',
      'https://a.partner.example',
      'http://127.0.0.1:9000',
      'https://10.1.2.3',
    ])
      expect(() => listed.check('e', url)).not.toThrow()
    for (const url of [
      'https://env.example',
      'https://env.internal:444',
      'https://partner.example',
      'https://a.partner.example.evil.example',
      'http://127.0.0.1:9001',
      'https://10.1.2.4',
    ])
      expect(() => listed.check('e', url)).toThrow('BRAIN_ENVIRONMENT_URL_ALLOW')
    // A host that the operator has named may be anywhere; of a whole domain its owner may point names anywhere.
    expect(listed.open('https://env.internal').isFit('10.0.0.1')).toBe(true)
    expect(listed.open('https://a.partner.example').isFit('10.0.0.1')).toBe(false)
    expect(() => new EnvironmentUrls({ allow: [], isLocal: true }).open('http://127.0.0.1:9')).toThrow('ALLOW')
  })

  it.each([
    ['http://0x7f.0.0.1/', 'plainly'],
    ['http://0177.0.0.1/', 'plainly'],
    ['http://127.1/', 'plainly'],
    ['http://１２７.0.0.1/', 'plainly'],
    ['https://user@env.example/', 'user'],
    ['https://env.example/?', 'query'],
    ['https://env.example/#', 'fragment'],
    ['https:env.example', 'plainly'],
    ['https://env.example\\@127.0.0.1/', 'plainly'],
    ['file:///etc/passwd', 'https'],
    ['javascript:1', 'https'],
    ['', 'no URL'],
  ])('are not %s', (url, reason) => {
    expect(() => local.check('e', url)).toThrow(reason)
  })
})
