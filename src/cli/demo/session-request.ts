import type { Json } from '../../kernel/json.ts'

/** A tool of a session, placed in its one environment. */
export type PlacedTool = { readonly name: string; readonly id: string; readonly configuration?: Json }

/** Body of a create request: tools that are components, in one environment `box` that may write its workspace. */
export function sessionRequest(tools: readonly PlacedTool[], script: Json): Json {
  return {
    model: { provider: 'scripted', name: 'script', api_key: 'none', script },
    tools: tools.map(({ name, id, configuration = {} }) => ({
      name,
      placements: { box: { implementation: { type: 'brain_component', entrypoint: 'run', id, configuration } } },
    })),
    environments: [
      {
        name: 'box',
        driver: 'brain',
        lifecycle: 'automatic',
        configuration: { filesystem: { workspace: 'write' } },
      },
    ],
  }
}
