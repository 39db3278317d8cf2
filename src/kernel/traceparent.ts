/** A `traceparent` of W3C Trace Context. */
export type Traceparent = {
  /** The trace that it belongs to, 32 hexadecimal digits. */
  readonly trace: string
  /** Two hexadecimal digits; the last bit says that the trace is recorded. */
  readonly flags: string
  /** The four parts that every version has, without what later ones may add. */
  readonly text: string
}

const PARTS = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(?:-|$)/

/** Reads what came as a `traceparent`; one that is malformed or all zeros is none (W3C Trace Context 2.2, 4.3). */
export function parseTraceparent(given: unknown): Traceparent | undefined {
  const [whole, trace, flags] = (typeof given === 'string' ? PARTS.exec(given) : null) ?? []
  if (whole === undefined || trace === undefined || flags === undefined) return undefined
  return { trace, flags, text: whole.replace(/-$/, '') }
}
