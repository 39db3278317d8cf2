import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'

const LONGEST_MS = 10_000

/**
 * Tells beforehand what the generator makes of a component. A child of its own would say the same, after 200 ms of starting:
 * here one looks at thousands.
 */
export class ComponentScreen implements AsyncDisposable {
  #child: ChildProcess | undefined

  /** One at a time. `unsure`: the generator broke, took long, or said something else than that it is malformed. */
  async foresee(component: Uint8Array): Promise<'taken' | 'malformed' | 'unsure'> {
    const child = (this.#child ??= fork(new URL('slices-screen-child.ts', import.meta.url), {
      serialization: 'advanced',
      execArgv: ['--no-warnings'],
    }))
    const answer = Promise.withResolvers<unknown>()
    const timer = setTimeout(answer.resolve, LONGEST_MS, 'late')
    const onEnd = () => answer.resolve('ended')
    child.once('message', answer.resolve).once('exit', onEnd)
    child.send(component)
    const verdict = await answer.promise
    clearTimeout(timer)
    child.off('message', answer.resolve).off('exit', onEnd)
    if (verdict === 'late' || verdict === 'ended') await this[Symbol.asyncDispose]()
    return verdict === 'malformed' || verdict === 'taken' ? verdict : 'unsure'
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }
}
