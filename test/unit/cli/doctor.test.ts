import { describe, expect, it } from 'vitest'
import { parseDistribution } from '../../../src/cli/doctor/distribution.ts'
import { type Finding, judge } from '../../../src/cli/doctor/judge.ts'
import type { MachineFacts } from '../../../src/cli/doctor/machine-facts.ts'

describe('parseDistribution()', () => {
  it.each([
    [
      'ID=debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"',
      'Debian GNU/Linux 12 (bookworm)',
      'sudo apt-get install x',
    ],
    ['PRETTY_NAME="Ubuntu 24.04 LTS"\nID=ubuntu\nID_LIKE=debian', 'Ubuntu 24.04 LTS', 'sudo apt-get install x'],
    ['ID=linuxmint\nID_LIKE="ubuntu debian"', 'linuxmint', 'sudo apt-get install x'],
    ['ID=fedora', 'fedora', 'sudo dnf install x'],
    ['ID="rocky"\nID_LIKE="rhel centos fedora"', 'rocky', 'sudo dnf install x'],
    ['ID=arch', 'arch', 'sudo pacman -S x'],
    ["ID='alpine'", 'alpine', 'sudo apk add x'],
    ['ID=nixos', 'nixos', 'add pkgs.x to environment.systemPackages, then sudo nixos-rebuild switch'],
    ['ID=constructor', 'constructor', 'install x with the package manager of this system'],
    ['', 'an unknown distribution', 'install x with the package manager of this system'],
  ])('%j', (text, name, command) => {
    const distribution = parseDistribution(text)
    expect([distribution.name, distribution.install('x')]).toEqual([name, command])
  })
})

const landlock = { name: 'landlock', landlockAbi: 7, remarks: [], unsafe: false } as const
const bubblewrap = {
  ...landlock,
  name: 'bubblewrap',
  bubblewrap: { path: '/usr/bin/bwrap', version: '0.8.0' },
} as const

const good: MachineFacts = {
  platform: 'linux x64',
  kernel: '6.12.1',
  nodeVersion: '26.10.0',
  isRoot: false,
  osRelease: 'ID=debian',
  securityModules: 'lockdown,landlock',
  seccompActions: 'kill_process errno allow',
  maxUserNamespaces: '1000',
  unprivilegedUserns: undefined,
  apparmorUserns: undefined,
  levels: [
    { name: 'bubblewrap', level: bubblewrap },
    { name: 'landlock', level: landlock },
  ],
  dataDirectory: { path: '/data', state: 'usable', freeBytes: 2 ** 30 },
}

const noted = (facts: Partial<MachineFacts>): readonly Finding[] =>
  judge({ ...good, ...facts }).filter(({ state }) => state !== 'ok')

const withoutBubblewrap = [
  { name: 'bubblewrap', reason: 'bubblewrap is not used: there is no bwrap on the PATH' },
  { name: 'landlock', level: landlock },
] as const

describe('judge()', () => {
  it('has nothing to say about a machine that has everything', () => {
    expect(noted({})).toEqual([])
  })

  it('names the package where bubblewrap is missing; components run', () => {
    const findings = noted({ levels: withoutBubblewrap })
    expect(findings.map(({ what, state }) => [what, state])).toEqual([
      ['sandbox level', 'advice'],
      ['bubblewrap', 'advice'],
    ])
    expect(findings[1]?.remedy).toBe('sudo apt-get install bubblewrap')
  })

  it.each([
    [{ maxUserNamespaces: '0' }, 'user.max_user_namespaces'],
    [{ unprivilegedUserns: '0' }, 'kernel.unprivileged_userns_clone=1'],
    [{ apparmorUserns: '1' }, 'kernel.apparmor_restrict_unprivileged_userns=0'],
    [{ maxUserNamespaces: undefined }, 'CONFIG_USER_NS'],
  ])('names the switch of user namespaces: %j', (facts, remedy) => {
    expect(noted(facts)).toEqual([
      { what: 'user namespaces', state: 'advice', found: expect.any(String), remedy: expect.stringContaining(remedy) },
    ])
    expect(noted({ ...facts, isRoot: true })).toEqual([])
  })

  it('says how landlock is switched on where there is no level at all', () => {
    const reason = 'the kernel has no landlock'
    const levels = [withoutBubblewrap[0], { name: 'landlock', reason }] as const
    const findings = noted({ levels, securityModules: 'lockdown,yama' })
    expect(findings.filter(({ state }) => state === 'problem').map(({ what }) => what)).toEqual([
      'sandbox level',
      'landlock',
    ])
    expect(findings.find(({ what }) => what === 'landlock')?.remedy).toContain('lsm=landlock,lockdown,yama')
  })

  it.each([
    [{ nodeVersion: '26.9.0' }, 'Node'],
    [{ platform: 'darwin arm64' }, 'system'],
    [{ dataDirectory: { ...good.dataDirectory, state: 'a symbolic link' } }, 'data directory'],
    [{ dataDirectory: { ...good.dataDirectory, state: 'not writable' } }, 'data directory'],
  ] as const)('calls a problem what stops components: %j', (facts, what) => {
    expect(noted(facts).map((finding) => [finding.what, finding.state])).toEqual([[what, 'problem']])
  })

  it('minds the disk at one byte under its limit', () => {
    const finding = (freeBytes: number) => noted({ dataDirectory: { ...good.dataDirectory, freeBytes } })
    expect([finding(2 ** 30).length, finding(2 ** 30 - 1).map(({ what }) => what)]).toEqual([0, ['free disk']])
  })
})
