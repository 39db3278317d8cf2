import type { Observation } from '../../contract/environment.ts'
import type { Callback } from '../../contract/environment-protocol.ts'
import { checkIdentifier } from '../declare/names.ts'
import { jsonOf } from '../json-value.ts'
import { quietly } from '../quietly.ts'
import { isPlainObject } from '../strict-members.ts'
import type { Fetch } from '../client/transport.ts'
import type { Presentation } from '../host/tool-context.ts'
import { CallbackClient, sequenceOf } from './callback-client.ts'

/** What a controller says of its environment. */
export interface Observer {
  /**
   * Appends an event of the environment's own to the journal, which wakes the session.
   *
   * @returns its sequence, once it is durable
   */
  readonly emit: (kind: string, data: unknown) => Promise<number>
  /**
   * Tells what has become of the environment, of something in it, or of an operation that was in doubt (contract 5.4).
   *
   * @returns the sequence of its `environment_observation`, once it is durable
   */
  readonly observe: (observation: Observation, presentation?: Presentation) => Promise<number>
}

/** An {@link Observer} for as long as the environment exists, also after a restart of Brain. */
export interface Reporter extends Observer {
  /** Keep it, as a secret, to make the same reporter again after a restart of the controller. */
  readonly callback: Callback | undefined
}

type Service = 'context' | 'reporter'

/** An observer over services that a command brought. @param service says how they are asked */
export function observerOf(client: CallbackClient, service: Service): Observer {
  const emit = async (kind: string, data: unknown): Promise<number> => {
    checkIdentifier(kind, 'Cannot emit: kind')
    const input = { event_type: kind, data: jsonOf(data, 'data') }
    const answer = await client.call('emit', input, service === 'reporter' ? { type: 'event', ...input } : undefined)
    return sequenceOf(answer, 'emit')
  }
  const observe = async (observation: Observation, { content }: Presentation = {}): Promise<number> => {
    const output = jsonOf({ observation, ...(content !== undefined && { content }) }, 'observation')
    const answer = await client.call('result', output, service === 'reporter' ? { type: 'result', output } : undefined)
    return sequenceOf(answer, 'result')
  }
  return {
    emit: (kind, data) => quietly(emit(kind, data)),
    observe: (observation, presentation) => quietly(observe(observation, presentation)),
  }
}

/**
 * Makes the reporter of an environment from what `ctx.reporter.callback` was, after a restart of its controller. Rejects
 * with BrainError: `not_found` once the environment is gone or replaced, `ambiguous` when no answer came back.
 *
 * @param options `fetch`: in place of the platform's
 * @throws TypeError for anything but a callback
 */
export function environmentReporter(callback: Callback, options: { readonly fetch?: Fetch } = {}): Reporter {
  if (!isPlainObject(callback) || typeof callback.url !== 'string' || typeof callback.token !== 'string')
    throw new TypeError('Cannot make a reporter: give what ctx.reporter.callback was')
  return reporterOf(callback, options.fetch)
}

/** The reporter that a command brought; without a callback everything is refused with `not_granted`. */
export function reporterOf(callback: Callback | undefined, fetch?: Fetch): Reporter {
  const over = new AbortController().signal
  const client = new CallbackClient({ callback, owner: 'this environment', over, fetch })
  const reporter = observerOf(client, 'reporter')
  // The token is not for logs.
  return Object.freeze(Object.defineProperty({ ...reporter, callback }, 'callback', { enumerable: false }))
}
