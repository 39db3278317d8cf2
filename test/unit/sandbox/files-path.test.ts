import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkPath, endsInDots, isServable, wantsDirectory } from '../../../src/sandbox/supervisor/files/path.ts'
import type { Refusal } from '../../../src/sandbox/supervisor/files/refusal.ts'

const codeOf = (path: string | Buffer): string => {
  try {
    checkPath(Buffer.from(path))
    return 'ok'
  } catch (error) {
    return (error as Refusal).code
  }
}

describe('checkPath()', () => {
  it.each([
    ['a', undefined, 'a', 'a'],
    ['a/b', 'a', 'b', 'b'],
    ['a/b/', 'a', 'b/', 'b'],
    ['a//b///', 'a/', 'b///', 'b'],
    ['./.', '.', '.', '.'],
    ['..', undefined, '..', '..'],
  ])('cuts %j into parent and last component', (path, parent, last, name) => {
    const checked = checkPath(Buffer.from(path))
    expect([checked.parent?.toString(), checked.last.toString(), checked.name.toString()]).toEqual([parent, last, name])
    expect(endsInDots(checked)).toBe(name === '.' || name === '..')
    expect(wantsDirectory(checked)).toBe(path.endsWith('/'))
  })

  it('refuses when a part of the form is wrong, by the code of that part', () => {
    expect(codeOf('')).toBe('no-entry')
    expect(codeOf('/')).toBe('not-permitted')
    expect(codeOf('/a')).toBe('not-permitted')
    expect(codeOf('a\0')).toBe('invalid')
    expect(codeOf('a\\')).toBe('invalid')
    expect(codeOf('x'.repeat(255))).toBe('ok')
    expect(codeOf('x'.repeat(256))).toBe('name-too-long')
    expect(codeOf('é'.repeat(128))).toBe('name-too-long')
    expect(codeOf(`${'x'.repeat(90)}/`.repeat(45))).toBe('ok')
    expect(codeOf(`${'x'.repeat(90)}/`.repeat(45) + 'c')).toBe('name-too-long')
    expect(codeOf('a/'.repeat(512))).toBe('ok')
    expect(codeOf('a/'.repeat(512) + 'c')).toBe('name-too-long')
    expect(codeOf(Buffer.from([0xc3]))).toBe('illegal-byte-sequence')
  })

  it('accepts every relative path of good components, and its parts make the whole', () => {
    const component = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
      .filter((text) => !/[/\\\0]/.test(text))
    fc.assert(
      fc.property(
        fc.array(component, { minLength: 1, maxLength: 8 }),
        fc.constantFrom('', '/'),
        (components, slash) => {
          const path = components.join('/') + slash
          const { parent, last, name } = checkPath(Buffer.from(path))
          const [before, after] = [parent === undefined ? '' : `${parent.toString()}/`, last.toString()]
          expect(before + after).toBe(path)
          expect(name.toString()).toBe(components.at(-1))
        },
      ),
    )
  })

  it('never accepts what names something else to the kernel', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        if (codeOf(Buffer.from(bytes)) !== 'ok') return
        expect(bytes.includes(0) || bytes.includes(0x5c)).toBe(false)
        expect(Buffer.from(Buffer.from(bytes).toString()).equals(bytes)).toBe(true)
      }),
    )
  })
})

describe('isServable()', () => {
  it('is false for names that no path can express', () => {
    expect(isServable(Buffer.from('naïve 😀'))).toBe(true)
    expect(isServable(Buffer.from([0xff]))).toBe(false)
    expect(isServable(Buffer.from('a\\b'))).toBe(false)
  })
})
