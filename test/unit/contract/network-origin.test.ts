import { describe, expect, it } from 'vitest'
import { authorityOf, covers, parseAuthority, parseOrigin } from '../../../src/contract/network-origin.ts'

const origin = (text: string) => parseOrigin(text) ?? expect.unreachable(text)

describe('an origin', () => {
  it.each([
    ['https://example.com', 'https', 'example.com', 443, false],
    ['https://example.com:443', 'https', 'example.com', 443, false],
    ['http://example.com', 'http', 'example.com', 80, false],
    ['http://example.com:443', 'http', 'example.com', 443, false],
    ['HTTPS://EXAMPLE.com.', 'https', 'example.com', 443, false],
    ['https://*.example.com:8443', 'https', 'example.com', 8443, true],
    ['https://bücher.example', 'https', 'xn--bcher-kva.example', 443, false],
    ['http://127.0.0.1:8080', 'http', '127.0.0.1', 8080, false],
    ['http://[::1]', 'http', '::1', 80, false],
    ['http://[0:0::1]:65535', 'http', '::1', 65_535, false],
    ['http://localhost', 'http', 'localhost', 80, false],
  ])('%s is read', (text, ...[scheme, host, port, subdomains]) => {
    expect(parseOrigin(text)).toEqual({ scheme, host, port, subdomains })
  })

  it.each([
    '',
    'example.com',
    'ftp://example.com',
    'https://',
    'https://*',
    'https://*.',
    'https://*.127.0.0.1',
    'https://*.[::1]',
    'https://a.*.example',
    'https://*.*.example',
    'https://example.com/',
    'https://example.com/path',
    'https://example.com?q',
    'https://example.com#f',
    'https://user@example.com',
    'https://user:word@example.com',
    'https://example.com@evil.example',
    'https://example.com\\@evil.example',
    'https://exa mple.com',
    'https://example.com\n',
    'https://ex%61mple.com',
    'https://example..com',
    'https://.example.com',
    'https://example.com..',
    'https://example.com:0',
    'https://example.com:65536',
    'https://example.com:',
    'https://example.com:80:80',
    'http://[fe80::1%eth0]',
    'http://[fe80::1%25eth0]',
    'http://[::1',
    'http://::1',
    'http://127.1',
    'http://0177.0.0.1',
    'http://0x7f.0.0.1',
    'http://2130706433',
    'http://127.0.0.01',
    'http://１２７.0.0.1',
    'http://256.256.256.256',
    `http://${'a'.repeat(254)}`,
  ])('%s is not one', (text) => {
    expect(parseOrigin(text)).toBeUndefined()
  })

  it('has a host of at most 253 characters', () => {
    const host = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`
    expect(parseAuthority('http', host)).toMatchObject({ host })
    expect(parseAuthority('http', `${host}e`)).toBeUndefined()
  })

  it.each([
    ['https://example.com:443', 'example.com'],
    ['http://example.com:8080', 'example.com:8080'],
    ['https://[::1]', '[::1]'],
  ])('%s is %s in a Host header', (text, host) => {
    expect(authorityOf(origin(text))).toBe(host)
  })
})

describe('what an origin allows', () => {
  it.each([
    ['https://example.com', 'https://example.com:443', true],
    ['https://example.com', 'https://EXAMPLE.COM.', true],
    ['https://example.com', 'http://example.com', false],
    ['https://example.com', 'https://example.com:8443', false],
    ['https://example.com', 'https://www.example.com', false],
    ['https://example.com', 'https://*.example.com', false],
    ['https://*.example.com', 'https://example.com', false],
    ['https://*.example.com', 'https://www.example.com', true],
    ['https://*.example.com', 'https://a.b.example.com', true],
    ['https://*.example.com', 'https://evil-example.com', false],
    ['https://*.example.com', 'https://evilexample.com', false],
    ['https://*.example.com', 'https://example.com.evil', false],
    ['https://*.example.com', 'http://www.example.com', false],
    ['https://*.example.com', 'https://www.example.com:444', false],
    ['https://*.example.com', 'https://*.example.com', true],
    ['https://*.example.com', 'https://*.a.example.com', true],
    ['https://*.a.example.com', 'https://*.example.com', false],
    ['http://[::1]', 'http://[0:0:0:0:0:0:0:1]', true],
    ['http://127.0.0.1', 'http://[::ffff:127.0.0.1]', false],
    ['http://localhost', 'http://127.0.0.1', false],
  ])('%s: %s is %s', (allowed, wanted, answer) => {
    expect(covers(origin(allowed), origin(wanted))).toBe(answer)
  })
})
