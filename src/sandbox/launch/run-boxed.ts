import { type BoxedProgram, spawnBoxed } from './spawn-boxed.ts'

/** What a program in a box said and how it ended. All of it may be hostile. */
export type BoxedRun = {
  /** On fd 3. */
  readonly said: string
  /** On stdout and stderr. */
  readonly words: string
  /** A signal or an exit code. */
  readonly how: string
}

const WORDS = 400

/** Runs a program in a box to its end, or until it is killed after `ms`. Of what it says `most` characters are kept. */
export async function runBoxed(program: BoxedProgram, { ms, most }: { ms: number; most: number }): Promise<BoxedRun> {
  const ended = Promise.withResolvers<string>()
  let said = ''
  let words = ''
  const box = spawnBoxed(program, {
    onChannel: { onBytes: (bytes) => (said = (said + bytes.toString('utf8')).slice(0, most)) },
    onOutput: (_fd, bytes) => (words = (words + bytes.toString('utf8')).slice(0, WORDS)),
    // What it said last may not have been read yet.
    onExit: (how) => setImmediate(() => ended.resolve(how)),
  })
  const timer = setTimeout(() => box.kill(), ms)
  const how = await ended.promise
  clearTimeout(timer)
  for (const channel of [box.channel, ...box.output]) channel.close()
  return { said, words, how }
}
