import { toolsOf } from '../contract/tool-service.ts'
import { type Placing, SERVICES } from '../dispatch/environments/places.ts'
import type { ActivationTool } from './agentloop.ts'

/** The tools of a session with all places where they can be called: those that were declared, then instances (contract 7.2). */
export function activationTools({ configuration, state }: Placing): readonly ActivationTool[] {
  const entries = [...state.environments.values(), SERVICES]
  return toolsOf(configuration).map((tool): ActivationTool => {
    const { name, description, input_schema, output_schema } = tool
    const isDeclared = (place: string): boolean => Object.hasOwn(tool.placements, place)
    const ofTool = entries.filter(({ template, state: is }) => isDeclared(template) && is !== 'deleted')
    const refs = [
      ...Object.keys(tool.placements).flatMap(
        (place) => ofTool.find(({ reference }) => reference.name === place) ?? [],
      ),
      ...ofTool.filter(({ reference }) => !isDeclared(reference.name)),
    ].map(({ reference }) => reference)
    return {
      name,
      description,
      input_schema,
      output_schema: output_schema ?? {},
      environments: refs.map((reference) => reference.name),
      ...(refs.some(({ sequence }) => sequence !== 1) ? { environment_refs: refs } : {}),
    }
  })
}
