import { dispatch, emit, events, model, setTranscript } from 'brain:agentloop/host'
import {
  failureIn,
  isNews,
  type JournalRecord,
  type Json,
  type Message,
  type Tool,
  type ToolReturn,
  type ToolUse,
  UNKNOWN,
} from './journal.ts'
import { Observations } from './observations.ts'

type TurnInput = {
  inputJson: string
  transcriptJson: string
  kvJson: string
  eventsJson: string
  toolsJson: string
}

/** The export of the world: one activation. What a host function throws fails the turn with its code. */
export function turn(input: TurnInput): { resultJson?: string } {
  new Conversation(input).run()
  return {} // what is said stands in `output_emitted`: a result would only repeat it
}

class Conversation {
  readonly #input: { message: string; media?: [] } | null
  readonly #tools: Tool[]
  readonly #events: JournalRecord[]
  readonly #observations: Observations
  readonly #messages: Message[]
  #cursor: number

  constructor({ inputJson, transcriptJson, kvJson, eventsJson, toolsJson }: TurnInput) {
    this.#input = JSON.parse(inputJson)
    this.#messages = JSON.parse(transcriptJson)
    this.#observations = new Observations(JSON.parse(kvJson))
    this.#events = JSON.parse(eventsJson)
    this.#tools = JSON.parse(toolsJson)
    this.#cursor = this.#events.at(-1)?.sequence ?? 0
  }

  run(): void {
    this.#answerOpenUses()
    const hasNews = this.#observe(this.#events)
    if (this.#input !== null) {
      const { message, media = [] } = this.#input
      this.#messages.push({ role: 'user', content: [{ type: 'text', text: message }, ...media] })
    }
    this.#save()
    if (this.#input === null && !hasNews) {
      this.#readOn() // later records are only taken note of
      return
    }
    for (;;) {
      const answer = this.#ask()
      const uses = answer.content.filter((block) => block.type === 'tool_use')
      if (uses.length > 0) this.#use(uses)
      else if (!this.#readOn()) {
        emit('output_emitted', JSON.stringify({ type: 'assistant_message', message: answer }))
        return
      }
    }
  }

  #ask(): Message {
    const { message } = JSON.parse(model(JSON.stringify({ messages: this.#messages }))) as { message: Message }
    nameApart(message)
    this.#messages.push(message)
    setTranscript(JSON.stringify(this.#messages))
    return message
  }

  /** Makes the calls that the model asked for, all at once, and answers every one. */
  #use(uses: ToolUse[]): void {
    const calls = uses.flatMap((use) => {
      const environment = this.#environmentOf(use.name)
      return environment === undefined ? [] : [{ call_id: use.id, name: use.name, environment, input: use.input }]
    })
    const returns: ToolReturn[] = JSON.parse(dispatch(JSON.stringify(calls)))
    const content = uses.map((use) => {
      const answer = returns.find(({ call_id }) => call_id === use.id)
      if (answer !== undefined) return resultOf(use.id, answer.events, answer.finished)
      const told = { code: 'unknown_tool', message: `There is no tool "${use.name}" in this session` }
      return { type: 'tool_result' as const, tool_use_id: use.id, content: told, is_error: true }
    })
    for (const answer of returns) this.#observations.saw(answer.events)
    this.#messages.push({ role: 'user', content })
    this.#save()
  }

  #environmentOf(tool: string): string | undefined {
    return this.#tools.find(({ name }) => name === tool)?.environments[0]
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
  #observe(records: JournalRecord[]): boolean {
    const content = this.#observations.news(records).map((text) => ({ type: 'text' as const, text }))
    if (content.length > 0) this.#messages.push({ role: 'user', content })
    return content.length > 0
  }

  /** Reads to the end of the journal, so that these records start no turn of their own. @returns as `observe` */
  #readOn(): boolean {
    let hasNews = false
    for (;;) {
      const page = JSON.parse(events(this.#cursor)) as { events: JournalRecord[]; next_cursor: number }
      if (page.events.length === 0) break
      this.#cursor = page.next_cursor
      hasNews = this.#observe(page.events) || hasNews
    }
    if (hasNews) this.#save()
    return hasNews
  }

  #save(): void {
    setTranscript(JSON.stringify(this.#messages))
    this.#observations.save()
  }
}

function resultOf(id: string, records: JournalRecord[], finished: boolean) {
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
function nameApart({ content }: Message): void {
  const taken = new Set<string>()
  for (const [index, block] of content.entries()) {
    if (block.type !== 'tool_use') continue
    if (block.id === '' || taken.has(block.id)) block.id = `${block.id || 'call'}_${index}`
    taken.add(block.id)
  }
}
