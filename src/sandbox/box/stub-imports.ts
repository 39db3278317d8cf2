import { hostCall } from './rpc.ts'
export function beginInvocation(_: { mounts: readonly string[] }): void {}
export function endInvocation(): void {}
const none = (o: object) => Object.assign(Object.create(null), o)
export function createImports(_limits: object): object {
  return none({
    'brain:tool/host': none({
      emit: (k: string, p: string) => BigInt(hostCall('emit', [k, p])),
      model: (p: string) => hostCall('model', [p]),
      finish: (p: string | undefined) => BigInt(hostCall('finish', [p])),
    }),
  })
}
