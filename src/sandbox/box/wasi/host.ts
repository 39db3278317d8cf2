import type { CurrentInvocation } from './invocation.ts'

const isRefusal = (error: unknown): boolean => error instanceof Error && Object.hasOwn(error, 'payload')

/** `brain:tool/host` (contract 6.3): the texts go to the server as they are, numbers come back as sequences. */
export function createHost(current: CurrentInvocation) {
  const call = (...request: Parameters<ReturnType<CurrentInvocation['get']>['channel']['hostCall']>): string => {
    const { channel, files } = current.get()
    // What is told may be about files.
    files.settle()
    return channel.hostCall(...request)
  }
  return {
    environments: (request: string) => call('environments', [request]),
    model: (request: string) => call('model', [request]),
    emit: (kind: string, payload: string) => BigInt(call('emit', [kind, payload])),
    emitResult: (outcome: string) => BigInt(call('emitResult', [outcome])),
    returned: (outcome: string | undefined) => BigInt(call('returned', [outcome])),
    finish: (outcome: string | undefined) => BigInt(call('finish', [outcome])),
    /** Has no error in its interface, and is never one. */
    telemetry(record: string): void {
      try {
        call('telemetry', [record])
      } catch (error) {
        if (!isRefusal(error)) throw error
      }
    },
  }
}
