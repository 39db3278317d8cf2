/** Where the sandbox says what no caller is told: a lost supervisor, a defect of a host service. */
export type SandboxLogger = { warn(facts: Readonly<Record<string, unknown>>, message: string): void }

export const silentLogger: SandboxLogger = { warn: () => {} }
