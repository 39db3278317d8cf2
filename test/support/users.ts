const NOBODY = 65_534

/** Who may run a server on this machine: root where we are root, and an ordinary user. Undefined = ourselves. */
export const USERS: readonly (readonly [name: string, uid: number | undefined])[] =
  process.getuid?.() === 0
    ? [
        ['root', undefined],
        ['an ordinary user', NOBODY],
      ]
    : [['an ordinary user', undefined]]
