import { describe, expect, it } from 'vitest'
import { parseProxyRules, proxyFor } from '../../../../src/kernel/net/proxy-rules.ts'

const isProxied = (except: string, url: string): boolean =>
  proxyFor(parseProxyRules({ http: 'p.test:3128', https: 'p.test:3128', except }), new URL(url)) !== undefined

describe('parseProxyRules()', () => {
  it('has a proxy for each scheme, loopback included', () => {
    const rules = parseProxyRules({ http: 'http://a.test', https: 'https://u%3A1:p%20w@b.test:8443/' })
    expect(proxyFor(rules, new URL('http://127.0.0.1:8081/x'))).toEqual({
      url: new URL('http://a.test'),
      authorization: undefined,
    })
    expect(proxyFor(rules, new URL('https://localhost'))).toEqual({
      url: new URL('https://b.test:8443'),
      authorization: `Basic ${Buffer.from('u:1:p w').toString('base64')}`,
    })
    expect(proxyFor(parseProxyRules({ http: '', https: ' ' }), new URL('http://x.test'))).toBeUndefined()
  })

  it.each([
    ['socks5://user:secret@x.test', 'only proxies that are spoken to over http or https'],
    ['http://user:secret%@x.test', 'not percent-encoded'],
    ['http://secret:x:y', 'no URL'],
  ])('refuses %j without repeating it', (http, reason) => {
    expect(() => parseProxyRules({ http })).toThrow(
      expect.objectContaining({ message: expect.stringContaining(`Cannot use HTTP_PROXY: `) }),
    )
    expect(() => parseProxyRules({ http })).toThrow(reason)
    expect(() => parseProxyRules({ http })).not.toThrow('secret')
  })

  it.each([
    ['*', 'http://x.test', false],
    ['x.test', 'http://x.test', false],
    ['X.Test', 'https://a.X.test', false],
    ['.x.test', 'http://x.test', false],
    ['*.x.test', 'http://a.b.x.test', false],
    ['x.test', 'http://yx.test', true],
    ['x.test:8081', 'http://x.test:8081', false],
    ['x.test:8081', 'http://x.test', true],
    ['x.test:443', 'https://x.test', false],
    ['a.test, ,x.test b.test', 'http://b.test', false],
    ['127.0.0.1', 'http://127.0.0.1:8081', false],
    ['0.0.1', 'http://127.0.0.1', true],
    ['10.0.0.0/8', 'http://10.1.2.3', false],
    ['10.0.0.0/8', 'http://11.1.2.3', true],
    ['10.0.0.0/8', 'http://x.test', true],
    ['10.0.0.0/99', 'http://10.1.2.3', true],
    ['::1', 'http://[::1]:8081', false],
    ['[::1]:8081', 'http://[::1]:8081', false],
    ['[::1]:8081', 'http://[::1]:8082', true],
    ['fd00::/8', 'http://[fd12::1]', false],
    ['', 'http://x.test', true],
    ['.', 'http://x.test', true],
  ])('exempts by %j: %s is proxied: %s', (except, url, proxied) => {
    expect(isProxied(except, url)).toBe(proxied)
  })
})
