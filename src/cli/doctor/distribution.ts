/** A Linux distribution, by what its /etc/os-release says. */
export type Distribution = {
  readonly name: string
  /** The command that installs a package, which has the same name everywhere. */
  readonly install: (what: string) => string
}

const INSTALLERS: Readonly<Record<string, (what: string) => string>> = {
  debian: (what) => `sudo apt-get install ${what}`,
  ubuntu: (what) => `sudo apt-get install ${what}`,
  fedora: (what) => `sudo dnf install ${what}`,
  rhel: (what) => `sudo dnf install ${what}`,
  arch: (what) => `sudo pacman -S ${what}`,
  alpine: (what) => `sudo apk add ${what}`,
  nixos: (what) => `add pkgs.${what} to environment.systemPackages, then sudo nixos-rebuild switch`,
}

const byHand = (what: string): string => `install ${what} with the package manager of this system`

/** @param osRelease text of /etc/os-release; empty where there is none */
export function parseDistribution(osRelease: string): Distribution {
  const fields = new Map(
    [...osRelease.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, key = '', value = '']) => [
      key,
      value.trim().replace(/^(["'])(.*)\1$/, '$2'),
    ]),
  )
  // A derived distribution names those whose packages it uses.
  const ids = [fields.get('ID') ?? '', ...(fields.get('ID_LIKE') ?? '').split(/\s+/)]
  const known = ids.find((id) => Object.hasOwn(INSTALLERS, id))
  return {
    name: fields.get('PRETTY_NAME') ?? fields.get('ID') ?? 'an unknown distribution',
    install: (known === undefined ? undefined : INSTALLERS[known]) ?? byHand,
  }
}
