import { type Distribution, parseDistribution } from './distribution.ts'
import type { MachineFacts } from './machine-facts.ts'

export type Finding = {
  readonly what: string
  /** `problem`: no component can run until it is mended. `advice`: they run, and could run better. */
  readonly state: 'ok' | 'advice' | 'problem'
  readonly found: string
  readonly remedy?: string
}

const OLDEST_NODE = [26, 10] as const
const OLDEST_KERNEL = [5, 13] as const
const MIB = 1024 * 1024
const NEEDED_DISK_BYTES = 1024 * MIB

/** What the facts mean for somebody who wants to run components, in the order in which it matters. */
export function judge(facts: MachineFacts): readonly Finding[] {
  const distribution = parseDistribution(facts.osRelease)
  const canRun = facts.levels.some(({ level }) => level !== undefined)
  return [
    judgeLevel(facts, canRun),
    judgeNode(facts),
    judgeKernel(facts, distribution),
    judgeLandlock(facts, canRun),
    judgeSeccomp(facts, canRun),
    judgeUserNamespaces(facts),
    judgeBubblewrap(facts, distribution),
    judgeDirectory(facts),
    judgeDisk(facts),
  ]
}

function judgeLevel({ levels }: MachineFacts, canRun: boolean): Finding {
  const what = 'sandbox level'
  const best = levels.find(({ level }) => level !== undefined)
  const reasons = [...new Set(levels.flatMap(({ reason }) => reason ?? []))].join('; ')
  if (!canRun) return { what, state: 'problem', found: `none: ${reasons}`, remedy: 'see the problems and advice below' }
  const [first] = levels
  if (best === first) return { what, state: 'ok', found: `${best?.name}, the best there is` }
  return { what, state: 'advice', found: `${best?.name}; ${reasons}`, remedy: 'see the advice below for a better one' }
}

function isAtLeast(version: string, [major, minor]: readonly [number, number]): boolean {
  const [haveMajor = 0, haveMinor = 0] = version.split('.').map((part) => Number.parseInt(part, 10))
  return haveMajor > major || (haveMajor === major && haveMinor >= minor)
}

function judgeNode({ nodeVersion }: MachineFacts): Finding {
  if (isAtLeast(nodeVersion, OLDEST_NODE)) return { what: 'Node', state: 'ok', found: nodeVersion }
  const remedy = `install Node ${OLDEST_NODE.join('.')} or newer, for example with npm install node@26`
  return { what: 'Node', state: 'problem', found: nodeVersion, remedy }
}

function judgeKernel({ kernel, platform }: MachineFacts, { name }: Distribution): Finding {
  const found = `${kernel}, ${platform}, ${name}`
  if (!/^linux (?:x64|arm64)$/.test(platform))
    return { what: 'system', state: 'problem', found, remedy: 'run Brain on Linux on x86-64 or arm64' }
  if (isAtLeast(kernel, OLDEST_KERNEL)) return { what: 'system', state: 'ok', found }
  const remedy = `Linux ${OLDEST_KERNEL.join('.')} or newer has landlock`
  return { what: 'system', state: 'advice', found, remedy }
}

function judgeLandlock({ levels, securityModules }: MachineFacts, canRun: boolean): Finding {
  const what = 'landlock'
  const abi = Math.max(0, ...levels.map(({ level }) => level?.landlockAbi ?? 0))
  if (abi > 0) return { what, state: 'ok', found: `ABI ${abi}` }
  const isListed = securityModules?.split(',').includes('landlock')
  const found = isListed === true ? 'switched on, and no box starts with it' : 'not there'
  const modules = securityModules === undefined || securityModules === '' ? 'EXISTING' : securityModules
  const remedy =
    isListed === true
      ? 'look whether a container or a policy forbids its system calls'
      : `start the kernel with lsm=landlock,${modules} (a kernel that has it compiled in)`
  return { what, state: canRun ? 'advice' : 'problem', found, remedy }
}

function judgeSeccomp({ seccompActions, platform }: MachineFacts, canRun: boolean): Finding {
  const what = 'seccomp'
  if (seccompActions?.includes('kill_process') === true) return { what, state: 'ok', found: 'filters' }
  if (canRun) return { what, state: 'ok', found: 'filters: a box started with one' }
  const remedy = platform.startsWith('linux') ? 'a kernel with CONFIG_SECCOMP_FILTER' : 'Linux has it'
  return { what, state: 'problem', found: 'no filters are to be seen', remedy }
}

function judgeUserNamespaces(facts: MachineFacts): Finding {
  const what = 'user namespaces'
  const { maxUserNamespaces, unprivilegedUserns, apparmorUserns } = facts
  if (facts.isRoot) return { what, state: 'ok', found: 'not needed by root' }
  const advise = (found: string, remedy: string): Finding => ({ what, state: 'advice', found, remedy })
  if (maxUserNamespaces === undefined) return advise('not in this kernel', 'a kernel with CONFIG_USER_NS')
  if (Number(maxUserNamespaces) === 0)
    return advise('switched off (user.max_user_namespaces = 0)', 'sudo sysctl -w user.max_user_namespaces=16384')
  if (unprivilegedUserns === '0') return advise('for root alone', 'sudo sysctl -w kernel.unprivileged_userns_clone=1')
  if (apparmorUserns === '1')
    return advise(
      'for programs with an AppArmor profile alone',
      'a profile for bwrap (Ubuntu: package apparmor-profiles, bwrap-userns-restrict), or sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0',
    )
  return { what, state: 'ok', found: `allowed, ${maxUserNamespaces} at most` }
}

function judgeBubblewrap({ levels }: MachineFacts, { install }: Distribution): Finding {
  const what = 'bubblewrap'
  const probe = levels.find(({ name }) => name === 'bubblewrap')
  const found = probe?.level?.bubblewrap
  if (found !== undefined) return { what, state: 'ok', found: `${found.version}, ${found.path}` }
  const reason = probe?.reason ?? 'not tried'
  if (/no bwrap on the PATH/.test(reason))
    return { what, state: 'advice', found: 'not installed', remedy: install('bubblewrap') }
  return { what, state: 'advice', found: reason, remedy: 'allow user namespaces, or run with landlock alone' }
}

function judgeDirectory({ dataDirectory: { path, state } }: MachineFacts): Finding {
  const found = `${path}: ${state}`
  const what = 'data directory'
  if (state === 'usable' || state === 'not there yet') return { what, state: 'ok', found }
  const remedy =
    state === 'not writable'
      ? 'give it to the user who runs Brain, or set BRAIN_DATA_DIR'
      : 'set BRAIN_DATA_DIR to a real directory'
  return { what, state: 'problem', found, remedy }
}

function judgeDisk({ dataDirectory: { freeBytes } }: MachineFacts): Finding {
  const what = 'free disk'
  if (freeBytes === undefined) return { what, state: 'advice', found: 'not known' }
  const found = `${Math.floor(freeBytes / MIB)} MiB`
  if (freeBytes >= NEEDED_DISK_BYTES) return { what, state: 'ok', found }
  return { what, state: 'advice', found, remedy: `free ${NEEDED_DISK_BYTES / MIB} MiB: a workspace may grow to that` }
}
