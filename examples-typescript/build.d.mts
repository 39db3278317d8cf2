/**
 * Builds an agentloop of a folder that holds `loop.ts`.
 * @param folder relative to this one, or absolute.
 * @returns the bytes of the component
 * @throws Error with what esbuild or componentize-qjs say
 */
export function buildAgentloop(folder: string): Promise<Uint8Array>
