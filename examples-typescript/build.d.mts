/**
 * The JavaScript of an agentloop of a folder that holds `loop.ts`, in one file.
 * @param folder relative to this one, or absolute.
 * @throws Error with what esbuild says
 */
export function bundleAgentloop(folder: string): Promise<string>
/**
 * Builds an agentloop of a folder that holds `loop.ts`.
 * @param folder relative to this one, or absolute.
 * @returns the bytes of the component
 * @throws Error with what esbuild or componentize-qjs say
 */
export function buildAgentloop(folder: string): Promise<Uint8Array>
