import { cpus, release, totalmem } from 'node:os'
import { FIGURES, type Requirement } from './figures.ts'
import type { Figure } from './figure.ts'

const GIB = 1024 ** 3

/** The machine that figures were measured on: they mean nothing without it. */
export function printMachine(runs: number): void {
  const processors = cpus()
  const memory = (totalmem() / GIB).toFixed(0)
  process.stdout.write(
    `${processors.length} × ${processors[0]?.model.trim() ?? 'unknown processor'}, ${memory} GiB, Linux ${release()}, ` +
      `Node ${process.version}; median of ${runs} runs\n`,
  )
}

export type Verdict = { readonly isMet: boolean; readonly text: string }

/** Whether a figure keeps the values that are required of it. */
export function verdictsOf(figure: Figure, figures: readonly Figure[]): readonly Verdict[] {
  return (FIGURES[figure.name]?.required ?? []).map((requirement) => {
    const value = valueOf(figure, requirement, figures)
    const bound = requirement.least ?? requirement.most ?? 0
    const sign = requirement.least === undefined ? '≤' : '≥'
    const required = `${requirement.what} ${sign} ${bound}`
    if (value === undefined) return { isMet: false, text: `${required} not measured` }
    const isMet = requirement.least === undefined ? value <= bound : value >= bound
    return { isMet, text: `${required} ${isMet ? 'met' : `NOT met (${value.toPrecision(3)})`}` }
  })
}

function valueOf(figure: Figure, { what }: Requirement, figures: readonly Figure[]): number | undefined {
  if (what !== 'above-floor') return figure[what]
  const floor = figures.find(({ name }) => name === FIGURES[figure.name]?.floor)
  return floor === undefined ? undefined : figure.p50 - floor.p50
}

export function printFigure({ name, unit, n, p50, p99, ratio }: Figure, verdicts: readonly Verdict[]): string {
  const cells = [
    name.padEnd(24),
    `n ${n}`.padEnd(8),
    `p50 ${p50} ${unit}`.padEnd(20),
    (p99 === undefined ? '' : `p99 ${p99} ${unit}`).padEnd(16),
    (ratio === undefined ? '' : `${ratio} × floor`).padEnd(14),
    verdicts.map(({ text }) => text).join('; '),
  ]
  return cells.join(' ').trimEnd()
}
