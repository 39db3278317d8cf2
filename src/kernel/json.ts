import { BrainError } from './errors.ts'

/** Any JSON value, as `JSON.parse` makes it. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** A JSON value with members. */
export type JsonObject = { readonly [key: string]: Json }

/** Deeper values are refused wherever JSON enters (cases D-11): our own and our users' code may recurse over them. */
export const MAX_JSON_DEPTH = 64

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const LETTER_E = 0x65
const POINT = 0x2e
const PLUS = 0x2b
const MINUS = 0x2d
const MAX_SAFE_DIGITS = 15

/** Says what is wrong with a number that a double may not carry, by the digits of its text, without a sign. */
type JudgeNumber = (source: string) => void

/**
 * Looks at JSON text without building it: how deep it is, and the numbers that a double may not carry (16 or more digits
 * in a row, or an exponent). A reviver would look at every value, for seconds where a text is nothing but numbers.
 *
 * @returns the depth
 * @throws what `judge` throws
 */
function measure(text: string, maxDepth: number, judge: JudgeNumber): number {
  let depth = 0
  let deepest = 0
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (isDigit(unit)) i = endOfNumber(text, i, judge) - 1
    else if (unit === QUOTE) i = endOfString(text, i)
    else if (unit === OPEN_BRACE || unit === OPEN_BRACKET) {
      if (++depth > deepest) deepest = depth
      if (depth > maxDepth) break
    } else if (unit === CLOSE_BRACE || unit === CLOSE_BRACKET) depth--
  }
  return deepest
}

const isDigit = (unit: number): boolean => unit >= 0x30 && unit <= 0x39
const isPlain = (unit: number): boolean => isDigit(unit) || unit === POINT
const isOfExponent = (unit: number): boolean => isPlain(unit) || unit === PLUS || unit === MINUS

/** Of what begins with a digit; whether it is a number at all is the parser's to say. */
function endOfNumber(text: string, start: number, judge: JudgeNumber): number {
  let digits = 0
  let end = start
  for (; isPlain(text.charCodeAt(end)); end++) if (isDigit(text.charCodeAt(end))) digits++
  const hasExponent = (text.charCodeAt(end) | 0x20) === LETTER_E
  if (hasExponent)
    do end++
    while (isOfExponent(text.charCodeAt(end)))
  if (hasExponent || digits > MAX_SAFE_DIGITS) judge(text.slice(start, end))
  return end
}

function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit === BACKSLASH) i++
    else if (unit === QUOTE) return i
  }
  return text.length
}

/** Where a double stops telling every integer from its neighbours. */
const FIRST_INEXACT = 2 ** 53

/** A decimal number in one spelling: sign, digits without zeros at either end, power of ten. */
function canonicalNumber(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  const digits = (whole + fraction).replace(/^0+/, '')
  const kept = digits.replace(/0+$/, '')
  return `${sign}${kept}e${Number(exponent) - fraction.length + digits.length - kept.length}`
}

function judgeNumber(source: string): void {
  const value = Number(source)
  if (Number.isNaN(value)) return
  if (value === Infinity) throw new RangeError(`the number ${source.slice(0, 40)} is too large for a double`)
  if (value < FIRST_INEXACT || canonicalNumber(source) === canonicalNumber(String(value))) return
  throw new RangeError(`the number ${source.slice(0, 40)} cannot be carried exactly: send it as a string`)
}

/** Printed doubles beyond 2^53 are integers too: these are told from integers that a double cannot carry. */
function judgePrinted(source: string): void {
  const isExact = /^\d{1,400}$/.test(source) && Number(source) < Infinity && BigInt(source) === BigInt(Number(source))
  if (!isExact) judgeNumber(source)
}

/**
 * Parses JSON that this project printed and others may have changed: like {@link parseJson}, but takes every number
 * that a double carries exactly.
 *
 * @throws BrainError `invalid_request`
 */
export const parsePrintedJson = (text: string, what: string, maxDepth: number): Json =>
  parseWith(text, what, { maxDepth, judge: judgePrinted })

/**
 * Parses JSON that came from outside.
 *
 * Numbers from 2^53 on, on either side of 0, are taken when they are printed as the same decimal number again and
 * refused otherwise, as are those beyond the range of a double: what is big is never another number (cases D-17). Below
 * that, fractions are rounded to the nearest double, and -0 is printed as 0. Text is kept as it is, NUL and lone
 * surrogates included. Of members with one name the last counts.
 *
 * @param what names the value in error messages, for example `request body`.
 * @throws BrainError `invalid_request`
 */
export function parseJson(text: string, what: string, maxDepth = MAX_JSON_DEPTH): Json {
  return parseWith(text, what, { maxDepth, judge: judgeNumber })
}

type Parsing = { readonly maxDepth: number; readonly judge: JudgeNumber }

function parseWith(text: string, what: string, { maxDepth, judge }: Parsing): Json {
  try {
    if (measure(text, maxDepth, judge) <= maxDepth) return JSON.parse(text) as Json
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new BrainError('invalid_request', `Cannot read ${what}: it is not usable JSON: ${reason.slice(0, 300)}`, {
      cause,
    })
  }
  throw new BrainError('invalid_request', `Cannot read ${what}: it is nested deeper than ${maxDepth} levels`)
}

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
