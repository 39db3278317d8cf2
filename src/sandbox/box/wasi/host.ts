import type { CurrentInvocation } from './invocation.ts'

const isRefusal = (error: unknown): boolean => error instanceof Error && Object.hasOwn(error, 'payload')

/**
 * `brain:tool/host` (contract 6.3) and `brain:agentloop/host` (7.2): the texts go to the server as they are, numbers come
 * back as sequences.
 */
export function createHosts(current: CurrentInvocation) {
  const call = (...request: Parameters<ReturnType<CurrentInvocation['get']>['channel']['hostCall']>): string => {
    const { channel, files } = current.get()
    // What is told may be about files.
    files.settle()
    return channel.hostCall(...request)
  }
  const both = {
    environments: (request: string) => call('environments', [request]),
    model: (request: string) => call('model', [request]),
    emit: (kind: string, payload: string) => BigInt(call('emit', [kind, payload])),
    /** Has no error in its interface, and is never one. */
    telemetry(record: string): void {
      try {
        call('telemetry', [record])
      } catch (error) {
        if (!isRefusal(error)) throw error
      }
    },
  }
  const tool = {
    ...both,
    emitResult: (outcome: string) => BigInt(call('emitResult', [outcome])),
    returned: (outcome: string | undefined) => BigInt(call('returned', [outcome])),
    finish: (outcome: string | undefined) => BigInt(call('finish', [outcome])),
  }
  const agentloop = {
    ...both,
    dispatch: (calls: string) => call('dispatch', [calls]),
    events: (after: bigint) => call('events', [String(after)]),
    setTranscript: (messages: string) => BigInt(call('setTranscript', [messages])),
    /** The text of a JSON value is never empty. */
    kvRead: (key: string) => call('kvRead', [key]) || undefined,
    kvPut: (key: string, value: string) => BigInt(call('kvPut', [key, value])),
    kvDelete: (key: string) => BigInt(call('kvDelete', [key])),
  }
  return { tool, agentloop }
}
