/** What a component can do nothing with unless it is granted, by what it imports for it. */
const GRANTS = [
  {
    interface: 'wasi:filesystem/types',
    for: 'files: a workspace, scratch space, secrets',
    flag: '--workspace, --scratch or --secret',
  },
  { interface: 'wasi:http/outgoing-handler', for: 'HTTP to the origins that are named', flag: '--net' },
] as const

export type NeededGrant = { readonly flag: string; readonly for: string }

/** Toolchains import more than a tool uses, so this is what it may need, not what it does. */
export const grantsFor = (imports: readonly string[]): NeededGrant[] =>
  GRANTS.filter((grant) => imports.includes(grant.interface)).map(({ flag, for: what }) => ({ flag, for: what }))
