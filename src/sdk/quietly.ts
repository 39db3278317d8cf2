/** A promise that ends no process when it fails and nobody waits for it. Whoever does sees the failure all the same. */
export function quietly<Result>(work: Promise<Result>): Promise<Result> {
  work.catch(() => {})
  return work
}
