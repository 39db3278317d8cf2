import type { Json } from '../../../kernel/json.ts'
import type { Block, Message, ToolResultBlock, ToolUseBlock } from '../../../contract/message.ts'
import type { EnvironmentRef } from '../../../contract/environment.ts'
import { dataOf, type JournalRecord, type ToolInvocation } from '../../../journal/record.ts'
import type { ActivationTool, Agentloop, LoopHost, ToolReturn, TurnInput } from '../../agentloop.ts'
import { Observations } from './observations.ts'
import { toResultBlock, unansweredBlock } from './result-block.ts'

/** The loop that a session gets when it names none (contract A2, 7.5). Uses nothing but the loop interface. */
export const builtinLoop: Agentloop = {
  run: (input, host) => new Conversation(input, host).run(),
}

class Conversation {
  readonly #input: TurnInput
  readonly #host: LoopHost
  readonly #observations: Observations
  #messages: Message[]
  #cursor: number

  constructor(input: TurnInput, host: LoopHost) {
    this.#input = input
    this.#host = host
    this.#observations = new Observations(input.kv)
    this.#messages = [...input.transcript]
    this.#cursor = input.events.at(-1)?.sequence ?? 0
  }

  async run(): Promise<Record<string, never>> {
    this.#answerOpenUses(this.#input.events)
    const shown = this.#observe(this.#input.events)
    if (this.#input.input !== undefined) this.#messages.push(userMessage(this.#input.input))
    await this.#save()
    if (this.#input.input === undefined && !shown) {
      await this.#readOn()
      return {}
    }
    for (;;) {
      const answer = await this.#ask()
      // Goes to disk together with what comes next, which does not depend on it.
      const saving = this.#host.setTranscript(this.#messages)
      const uses = answer.content.filter((block) => block.type === 'tool_use')
      if (uses.length > 0) await this.#use(uses, saving)
      else if (!(await this.#readOn(saving))) return this.#say(answer)
    }
  }

  async #save(): Promise<void> {
    await this.#host.setTranscript(this.#messages)
    await this.#observations.save(this.#host)
  }

  async #ask(): Promise<Message> {
    const { message } = await this.#host.model({ messages: this.#messages })
    const answer = withDistinctIds(message)
    this.#messages.push(answer)
    return answer
  }

  /** The event says it; a result would only repeat it (contract 7.5, docs/journal.md growth). */
  async #say(answer: Message): Promise<Record<string, never>> {
    await this.#host.emit('output_emitted', { type: 'assistant_message', message: answer as unknown as Json })
    return {}
  }

  /** Calls what the model asked for; every use gets its block, in the order of the uses (cases D-28). */
  async #use(uses: readonly ToolUseBlock[], saving: Promise<unknown>): Promise<void> {
    const plans = uses.map((use) => planOf(use, this.#input.tools))
    const calls = plans.flatMap((plan) => ('invocation' in plan ? [plan.invocation] : []))
    const [returns] = await Promise.all([this.#host.dispatch(calls), saving])
    const byCall = new Map<string, ToolReturn>(returns.map((answer) => [answer.call_id, answer]))
    const blocks = uses.map((use, index): ToolResultBlock => {
      const plan = plans[index]
      if (plan !== undefined && 'refusal' in plan) return plan.refusal
      const answer = byCall.get(use.id)
      return answer === undefined ? unansweredBlock(use.id) : toResultBlock(use.id, answer.events, answer.finished)
    })
    for (const answer of returns) this.#observations.saw(answer.events)
    this.#messages.push({ role: 'user', content: blocks })
    await this.#save()
  }

  /** Uses that a failed activation left without an answer get one, before anything new is said (cases D-27). */
  #answerOpenUses(events: readonly JournalRecord[]): void {
    const last = this.#messages.at(-1)
    if (last?.role !== 'assistant') return
    const uses = last.content.filter((block) => block.type === 'tool_use')
    if (uses.length === 0) return
    const blocks = uses.map((use) => {
      const records = recordsOfCall(use.id, events)
      this.#observations.saw(records)
      return records.length === 0 ? unansweredBlock(use.id) : toResultBlock(use.id, records, true)
    })
    this.#messages.push({ role: 'user', content: blocks })
  }

  /** Shows later results and failures to the model. @returns whether there was one. */
  #observe(events: readonly JournalRecord[]): boolean {
    const texts = this.#observations.take(events)
    if (texts.length > 0) this.#messages.push({ role: 'user', content: texts })
    return texts.length > 0
  }

  /** Reads to the journal's end, so that these records start no further activation. @returns whether one was shown. */
  async #readOn(saving?: Promise<unknown>): Promise<boolean> {
    let shown = false
    for (;;) {
      const [page] = await Promise.all([this.#host.events(this.#cursor), saving])
      if (page.events.length === 0) break
      this.#cursor = page.next_cursor
      shown = this.#observe(page.events) || shown
    }
    if (shown) await this.#save()
    return shown
  }
}

function userMessage(input: NonNullable<TurnInput['input']>): Message {
  return { role: 'user', content: [{ type: 'text', text: input.message }, ...(input.media ?? [])] }
}

type Plan = { readonly invocation: ToolInvocation } | { readonly refusal: ToolResultBlock }

/** A call that dispatch would refuse is answered here, so that it does not take its batch with it. */
function planOf(use: ToolUseBlock, tools: readonly ActivationTool[]): Plan {
  const tool = tools.find((candidate) => candidate.name === use.name)
  const [environment, another] = placesOf(tool)
  const refuse = (code: string, message: string): Plan => ({
    refusal: { type: 'tool_result', tool_use_id: use.id, content: { code, message }, is_error: true },
  })
  if (tool === undefined || environment === undefined)
    return refuse('unknown_tool', `There is no tool "${use.name}" in this session`)
  if (another !== undefined)
    return refuse('invalid_request', `Tool "${use.name}" is placed in several environments; this loop needs one`)
  const { name, sequence } = environment
  return {
    invocation: {
      call_id: use.id,
      name: use.name,
      environment: name,
      ...(sequence === 1 ? {} : { environment_sequence: sequence }),
      input: use.input,
    },
  }
}

/** Where a tool can be called; where it was declared goes before what was made of that later. */
function placesOf(tool: ActivationTool | undefined): readonly EnvironmentRef[] {
  const refs = tool?.environment_refs ?? tool?.environments.map((name) => ({ name, sequence: 1 })) ?? []
  const declared = refs.filter(({ sequence }) => sequence === 1)
  return declared.length > 0 ? declared : refs
}

/** Models repeat ids or leave them out; a batch must not (contract 7.3). */
function withDistinctIds(message: Message): Message {
  const seen = new Set<string>()
  const content = message.content.map((block, index): Block => {
    if (block.type !== 'tool_use') return block
    const id = block.id === '' || seen.has(block.id) ? `${block.id === '' ? 'call' : block.id}_${index}` : block.id
    seen.add(id)
    return id === block.id ? block : { ...block, id }
  })
  return { ...message, content }
}

/** The records that tell how the newest call with this id went. */
function recordsOfCall(callId: string, events: readonly JournalRecord[]): readonly JournalRecord[] {
  const started = events.findLast((record) => dataOf(record, 'tool_call_started')?.invocation.call_id === callId)
  if (started === undefined) return []
  return events.filter((record) => {
    const data =
      dataOf(record, 'tool_result_emitted') ?? dataOf(record, 'tool_call_ended') ?? dataOf(record, 'tool_call_failed')
    return data?.sequence === started.sequence
  })
}
