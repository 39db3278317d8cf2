import type { Json } from '../../kernel/json.ts'
import type { HostCommand, HostUpdate } from '../../contract/host-protocol.ts'
import type { ModelResult } from '../../contract/message.ts'
import type { CallServices } from './call-services.ts'
import type { PostToHost } from './post-to-host.ts'

/** The services of one call that came over the connection of a host (contract 4.2). */
export function hostServices(
  { session_id, sequence }: Pick<HostCommand, 'session_id' | 'sequence'>,
  post: PostToHost,
): CallServices {
  const about = (body: object): object => ({ session_id, sequence, ...body })
  const update = (body: HostUpdate): Promise<Json | undefined> => post('results', about({ update: body }))
  const finish: CallServices['finish'] = async (outcome) => {
    await update({ type: 'finish', ...(outcome && { outcome }) })
  }
  return {
    emit: async (event_type, data) => sequenceOf(await post('events', about({ event_type, data }))),
    result: async (outcome) => sequenceOf(await update({ type: 'result', outcome })),
    returned: async (outcome) => {
      await update({ type: 'returned', ...(outcome && { outcome }) })
    },
    finish,
    fail: finish,
    model: async (request, signal) => (await post('model', about({ request }), signal)) as unknown as ModelResult,
    environments: (input, signal) => post('call', about({ call: { method: 'environments', input } }), signal),
  }
}

const sequenceOf = (answer: Json | undefined): number => (answer as { sequence: number }).sequence
