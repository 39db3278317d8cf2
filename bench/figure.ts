export type Unit = 'ms' | 'us' | 'MiB' | 'MiB/s' | 'calls/s' | 'records/s'

/** One figure as it is printed (`--json`: one of them a line). */
export type Figure = {
  readonly name: string
  readonly unit: Unit
  /** Samples of all runs together. */
  readonly n: number
  /** Median of the medians of the runs. */
  readonly p50: number
  /** Over the samples of all runs; only where there are at least {@link LEAST_FOR_P99}. */
  readonly p99?: number
  /** Median over the runs of the run's median to the median of its floor. */
  readonly ratio?: number
}

/** With fewer samples the 99th percentile is one of the two or three largest, which says nothing. */
export const LEAST_FOR_P99 = 200

/** The value below which this share of the samples lies (nearest rank). */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b)
  const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]
  if (value === undefined) throw new Error('there is no percentile of nothing')
  return value
}

export const median = (samples: readonly number[]): number => percentile(samples, 0.5)

export type Measured = {
  readonly name: string
  readonly unit: Unit
  /** Samples by run. */
  readonly runs: readonly (readonly number[])[]
  /** Samples of its floor by run. */
  readonly floor?: readonly (readonly number[])[] | undefined
}

export function toFigure({ name, unit, runs, floor }: Measured): Figure {
  const all = runs.flat()
  const ratios = runs.flatMap((samples, run) => {
    const base = floor?.[run]
    return base === undefined ? [] : [median(samples) / median(base)]
  })
  return {
    name,
    unit,
    n: all.length,
    p50: rounded(median(runs.map(median))),
    ...(all.length < LEAST_FOR_P99 ? {} : { p99: rounded(percentile(all, 0.99)) }),
    ...(ratios.length === 0 ? {} : { ratio: rounded(median(ratios)) }),
  }
}

/** Four digits are more than any of these measurements repeats. */
const rounded = (value: number): number => Number(value.toPrecision(4))
