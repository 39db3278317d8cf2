import {
  type AgentloopContext,
  defineAgentloop,
  type Json,
  type Message,
  type ToolUseBlock,
} from '@aexhq/brain/agentloop'
import { failureIn, isNews, type JournalRecord, recordsIn, UNKNOWN } from './journal.ts'
import { Observations } from './observations.ts'

/** The export of the world: one activation. What the context refuses fails the turn with its code. */
export const turn = defineAgentloop((ctx) => {
  // What is said stands in `output_emitted`: a result would only repeat it.
  new Conversation(ctx).run()
})

class Conversation {
  readonly #ctx: AgentloopContext
  readonly #events: readonly JournalRecord[]
  readonly #observations: Observations
  readonly #messages: Message[]
  #cursor: number

  constructor(ctx: AgentloopContext) {
    this.#ctx = ctx
    this.#messages = [...ctx.transcript]
    this.#observations = new Observations(ctx.kv)
    this.#events = recordsIn(ctx.events)
    this.#cursor = this.#events.at(-1)?.sequence ?? 0
  }

  run(): void {
    this.#answerOpenUses()
    const hasNews = this.#observe(this.#events)
    const { input } = this.#ctx
    if (input !== undefined) {
      const { message, media = [] } = input
      this.#messages.push({ role: 'user', content: [{ type: 'text', text: message }, ...media] })
    }
    this.#save()
    if (input === undefined && !hasNews) {
      this.#readOn() // later records are only taken note of
      return
    }
    for (;;) {
      const answer = this.#ask()
      const uses = answer.content.filter((block) => block.type === 'tool_use')
      if (uses.length > 0) this.#use(uses)
      else if (!this.#readOn()) {
        this.#ctx.emit('output_emitted', { type: 'assistant_message', message: answer })
        return
      }
    }
  }

  #ask(): Message {
    const message = namedApart(this.#ctx.model({ messages: this.#messages }).message)
    this.#messages.push(message)
    this.#ctx.setTranscript(this.#messages)
    return message
  }

  /** Makes the calls that the model asked for, all at once, and answers every one. */
  #use(uses: ToolUseBlock[]): void {
    const known = uses.filter((use) => this.#ctx.tools.some(({ name }) => name === use.name))
    const returns = this.#ctx.callTools(known.map(({ id, name, input }) => ({ call_id: id, name, input })))
    const content = uses.map((use) => {
      const answer = returns.find(({ call_id }) => call_id === use.id)
      if (answer !== undefined) return resultOf(use.id, recordsIn(answer.events), answer.finished)
      const told = { code: 'unknown_tool', message: `There is no tool "${use.name}" in this session` }
      return { type: 'tool_result' as const, tool_use_id: use.id, content: told, is_error: true }
    })
    for (const answer of returns) this.#observations.saw(recordsIn(answer.events))
    this.#messages.push({ role: 'user', content })
    this.#save()
  }

  /** What a failed turn has left unanswered is answered before anything new is said: models insist on it. */
  #answerOpenUses(): void {
    const uses = this.#messages.at(-1)?.content.filter((block) => block.type === 'tool_use') ?? []
    if (uses.length === 0) return
    const content = uses.map(({ id }) => {
      const starts = this.#events.filter(({ event_type }) => event_type === 'tool_call_started')
      const started = starts.findLast(({ data }) => data.invocation?.call_id === id)
      const told = this.#events.filter(isNews)
      const records = told.filter(({ data }) => started !== undefined && data.sequence === started.sequence)
      this.#observations.saw(records)
      return resultOf(id, records, true)
    })
    this.#messages.push({ role: 'user', content })
  }

  /** @returns whether there was something to show */
  #observe(records: readonly JournalRecord[]): boolean {
    const content = this.#observations.news(records).map((text) => ({ type: 'text' as const, text }))
    if (content.length > 0) this.#messages.push({ role: 'user', content })
    return content.length > 0
  }

  /** Reads to the end of the journal, so that these records start no turn of their own. @returns as `observe` */
  #readOn(): boolean {
    let hasNews = false
    for (;;) {
      const page = this.#ctx.readEvents(this.#cursor)
      if (page.events.length === 0) break
      this.#cursor = page.next_cursor
      hasNews = this.#observe(recordsIn(page.events)) || hasNews
    }
    if (hasNews) this.#save()
    return hasNews
  }

  #save(): void {
    this.#ctx.setTranscript(this.#messages)
    this.#observations.save()
  }
}

function resultOf(id: string, records: readonly JournalRecord[], finished: boolean) {
  const results = records.filter(isNews).flatMap(({ data }) => data.result ?? [])
  const last = results.at(-1)
  const failure = last?.is_error === true ? undefined : records.map(failureIn).find((told) => told !== undefined)
  const shown: Json[] = results.map(({ content, output }) => content ?? output)
  if (failure !== undefined) shown.push(failure)
  if (shown.length === 0 && records.length === 0) shown.push({ code: 'unknown', message: UNKNOWN })
  const none = finished ? null : 'The tool goes on working; its results will follow.'
  return {
    type: 'tool_result' as const,
    tool_use_id: id,
    content: shown.length > 1 ? shown : (shown[0] ?? none),
    is_error: failure !== undefined || last?.is_error === true || records.length === 0,
  }
}

/** Models give ids twice, or none; calls of one batch need names of their own. */
function namedApart({ role, content }: Message): Message {
  const taken = new Set<string>()
  const named = content.map((block, index) => {
    if (block.type !== 'tool_use') return block
    const id = block.id === '' || taken.has(block.id) ? `${block.id || 'call'}_${index}` : block.id
    taken.add(id)
    return { ...block, id }
  })
  return { role, content: named }
}
