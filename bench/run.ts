import type { BenchServer } from './bench-server.ts'

/** The components that are measured; Python's is missing where this machine cannot build it. */
export type Subjects = {
  readonly wordcount: Buffer
  readonly files: Buffer
  readonly inspect: Buffer
  readonly slow: Buffer
  readonly python: Buffer | undefined
}

/** One run: a fresh server, and what runs in it. */
export type Run = { readonly server: BenchServer; readonly subjects: Subjects }

/** Samples by figure. A figure that cannot be measured on this machine is missing. */
export type Samples = Readonly<Record<string, readonly number[]>>

/** Measures the figures of one group, once. */
export type Group = (run: Run) => Promise<Samples>

/** How long some work takes, milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

/** The input of every word count, and what its answer must hold. */
export const WORDS = { input: { text: 'the cat and the hat' }, contains: ['"words":5', '"unique":4'] } as const
