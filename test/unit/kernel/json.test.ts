import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MAX_JSON_DEPTH, parseJson } from '../../../src/kernel/json.ts'

const refused = expect.objectContaining({ code: 'invalid_request' }) as unknown

describe('parseJson()', () => {
  it('gives what JSON.parse gives for any value that is not too deep', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 12 }), (text) => {
        const value: unknown = JSON.parse(text)
        if (JSON.stringify(value).match(/\d{16,}|e\+/)) return
        expect(parseJson(text, 'it')).toEqual(value)
      }),
    )
  })

  it.each([
    '9007199254740991',
    '-9007199254740991',
    '0.1',
    '1E2',
    '-0',
    '1.5e300',
    '0.12345678901234567890',
    '"9007199254740993"',
    '9007199254740992',
    '-9007199254740994.0',
    '1e20',
    '1.0E+20',
    '100000000000000000000',
    '1e23',
    '1.7976931348623157e308',
    '5e-324',
    '0e999',
    '0.0000000000000000000000001',
  ])('keeps %s', (text) => expect(parseJson(text, 'it')).toEqual(JSON.parse(text)))

  it.each([
    '9007199254740993',
    '9007199254740993.0',
    '900719925474099.3e1',
    '-9007199254740993e0',
    '123456789012345678.5',
    '1152921504606846976',
    '2512292042121000001',
    '[1,{"a":12345678901234567890}]',
    '{"__proto__":9007199254740993}',
    '1e400',
    '-1e999',
  ])('refuses %s, which a double cannot carry', (text) => expect(() => parseJson(text, 'it')).toThrow(refused))

  it('takes what it printed itself, and never changes a number that it takes from 2^53 on', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
        expect(parseJson(JSON.stringify(number), 'it')).toBe(number === 0 ? 0 : number)
      }),
    )
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 56n), max: 2n ** 56n }), (integer) => {
        let taken: unknown
        try {
          taken = parseJson(String(integer), 'it')
        } catch {
          return
        }
        expect(BigInt(String(taken))).toBe(integer)
      }),
    )
  })

  it('lets the last of several members with one name count, big numbers or not', () => {
    expect(parseJson('{"a":1,"b":2,"a":{"c":3}}', 'it')).toEqual({ a: { c: 3 }, b: 2 })
    expect(parseJson('{"a":1000000000000000000,"a":2}', 'it')).toEqual({ a: 2 })
  })

  it.each(['', ' ', '{', 'NaN', '[1,]', '{"a":Infinity}', 'undefined', '\u0000'])('refuses %j', (text) =>
    expect(() => parseJson(text, 'it')).toThrow(refused),
  )

  it('refuses values deeper than the limit in linear time, and takes those at the limit', () => {
    const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
    expect(parseJson(nested(MAX_JSON_DEPTH), 'it')).toBeDefined()
    expect(() => parseJson(nested(MAX_JSON_DEPTH + 1), 'it')).toThrow(/deeper than 64/)
    expect(() => parseJson(nested(5_000_000), 'it')).toThrow(refused)
    expect(() => parseJson('{"a":'.repeat(8000) + '1' + '}'.repeat(8000), 'it')).toThrow(refused)
  })

  it('does not count brackets in strings', () => {
    const text = JSON.stringify(['['.repeat(1000), 'a"b\\', { '[[[': '\\"[' }])
    expect(parseJson(text, 'it')).toEqual(JSON.parse(text))
  })

  it('keeps NUL, lone surrogates and __proto__ keys', () => {
    const text = '{"__proto__":{"x":1},"t":"a\\u0000b\\ud800"}'
    const value = parseJson(text, 'it') as Record<string, unknown>
    expect(Object.keys(value)).toEqual(['__proto__', 't'])
    expect(value['t']).toBe('a\u0000b\ud800')
    expect(({} as Record<string, unknown>)['x']).toBeUndefined()
    expect(JSON.stringify(value)).toBe(text)
  })
})
