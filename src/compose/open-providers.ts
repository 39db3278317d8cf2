import { readFile } from 'node:fs/promises'
import { BrainError, messageOf } from '../kernel/errors.ts'
import { parseJson } from '../kernel/json.ts'
import type { Config } from '../config/config.ts'
import type { ModelProvider } from '../model/model-provider.ts'
import { remoteProvider } from '../model/remote/remote-provider.ts'
import { parseScript, scriptedProvider } from '../model/scripted/scripted-provider.ts'

/** The providers of models that the configuration names, by their ids. */
export async function openProviders(config: Config): Promise<ReadonlyMap<string, ModelProvider>> {
  const { providers, scriptedModel, limits } = config
  const remote = providers.map((definition) => remoteProvider(definition, limits))
  const scripted = scriptedModel === undefined ? [] : [await openScripted(scriptedModel.file)]
  return new Map([...remote, ...scripted].map((provider) => [provider.id, provider]))
}

async function openScripted(file: string | undefined): Promise<ModelProvider> {
  return scriptedProvider(file === undefined ? undefined : await readScript(file))
}

async function readScript(file: string): Promise<ReturnType<typeof parseScript>> {
  const what = `BRAIN_SCRIPTED_MODEL_FILE ${file}`
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new BrainError('invalid_request', `Cannot read ${what}: ${messageOf(cause)}`, { cause })
  })
  return parseScript(parseJson(text, what), what)
}
