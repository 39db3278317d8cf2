import { canCallSystem } from './native.ts'
import { landlockAbi } from './launch/landlock.ts'
import type { SandboxLevel } from './sandbox.ts'

/** What a kernel of this landlock ABI or later adds; seccomp stands in for it on older ones. */
const ADDED_BY_ABI: readonly (readonly [abi: number, what: string])[] = [
  [2, 'moving files between directories'],
  [3, 'truncating files'],
  [4, 'TCP'],
  [6, 'signals and abstract sockets'],
]

/**
 * What this machine offers to boxes (design 5).
 *
 * @param unsafe the operator set BRAIN_ENV_UNSAFE=1; counts only where there is no level.
 */
export function probeLevel(unsafe = false): SandboxLevel {
  if (!canCallSystem()) {
    const where = `${process.platform} ${process.arch}, Node ${process.version}`
    return none(unsafe, `boxes need Linux on x64 or arm64 and a Node with node:ffi (this is ${where})`)
  }
  const abi = landlockAbi()
  if (abi < 1)
    return none(
      unsafe,
      'the kernel has no landlock: it needs Linux 5.13 or later with "landlock" in /sys/kernel/security/lsm',
    )
  const missing = ADDED_BY_ABI.filter(([since]) => abi < since).map(([, what]) => what)
  const remarks =
    missing.length === 0 ? [] : [`landlock ABI ${abi} does not cover ${missing.join(', ')}: seccomp alone denies it`]
  return { name: 'landlock', landlockAbi: abi, remarks, unsafe: false }
}

const none = (unsafe: boolean, reason: string): SandboxLevel => ({
  name: 'none',
  landlockAbi: 0,
  remarks: [reason],
  unsafe,
})
