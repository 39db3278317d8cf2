/** What a session's sealed file holds: the key of its model, and credentials of its environments by name. */
export type SessionSecrets = { readonly apiKey: string; readonly environments: Readonly<Record<string, string>> }

/** No key of a model begins with it: a header could not carry it. */
const MARK = '\0'

export function printSecrets({ apiKey, environments }: SessionSecrets): string {
  return Object.keys(environments).length === 0 ? apiKey : MARK + JSON.stringify({ api_key: apiKey, environments })
}

/** The seal has proved that this server wrote it. */
type Sealed = { readonly api_key: string; readonly environments: Readonly<Record<string, string>> }

export function readSecrets(text: string): SessionSecrets {
  if (!text.startsWith(MARK)) return { apiKey: text, environments: {} }
  const { api_key: apiKey, environments } = JSON.parse(text.slice(MARK.length)) as Sealed
  return { apiKey, environments }
}

/** The credential of an environment, whose name may be that of anything. */
export const credentialIn = ({ environments }: SessionSecrets, name: string): string | undefined =>
  Object.hasOwn(environments, name) ? environments[name] : undefined
