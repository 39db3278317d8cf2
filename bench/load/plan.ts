/** What one connection asks, again and again. */
export type Lane = {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** JSON of a POST. Every one carries a key of its own. */
  readonly body?: string
  /** What the answer must hold. */
  readonly status: number
  readonly contains: readonly string[]
}

/** What the load process does: each lane is one keep-alive connection with one request at a time. */
export type LoadPlan = {
  readonly port: number
  readonly lanes: readonly Lane[]
  /** Pause of a lane between an answer and its next request, milliseconds. */
  readonly idleMs: number
  /** Not measured: the first answers of every lane, or what happens before this much time has passed. */
  readonly warmUp: { readonly answers: number } | { readonly ms: number }
  /** Measured answers of every lane; measured time; or until standard input ends. */
  readonly until: { readonly answers: number } | { readonly ms: number } | 'told'
}

export type LoadResult = {
  /** One per measured answer. */
  readonly latenciesMs: readonly number[]
  readonly elapsedMs: number
  /** CPU time of the load process itself while it measured. */
  readonly cpuMs: number
}
