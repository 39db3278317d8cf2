import { type BoxEnd, OneShotBox } from './one-shot-box.ts'
import { type BoxedProgram, spawnBoxed } from './spawn-boxed.ts'

/** What a program in a box said and how it ended. All of it may be hostile. */
export type BoxedRun = BoxEnd & {
  /** On fd 3. */
  readonly said: string
}

const WORDS = 400

/** Runs a program in a box to its end, or until it is killed after `ms`. Of what it says `most` characters are kept. */
export async function runBoxed(program: BoxedProgram, { ms, most }: { ms: number; most: number }): Promise<BoxedRun> {
  const ended = Promise.withResolvers<BoxEnd>()
  let said = ''
  const box = new OneShotBox((events) => spawnBoxed(program, events), WORDS, {
    onBytes: (bytes) => (said = (said + bytes.toString('utf8')).slice(0, most)),
    onEnd: ended.resolve,
  })
  const timer = setTimeout(() => box.kill(), ms)
  const end = await ended.promise
  clearTimeout(timer)
  box.close()
  return { said, ...end }
}
