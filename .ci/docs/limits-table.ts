import { LIMITS, type LimitName } from '../../src/contract/limits.ts'

/** What each limit is for; a new one does not compile until somebody says it. */
const PURPOSE: Readonly<Record<LimitName, string>> = {
  requestBytes: 'body of a JSON request; more answers 413',
  packageBytes: 'size of an uploaded component; more answers 413',
  executionInputBytes: 'input of one tool call, as JSON text; more ends the call `invalid_input`',
  executionOutputBytes: 'one result or one event of a component, as JSON text',
  agentloopRequestBytes:
    'one host call of an agentloop, as JSON text, such as the conversation that it sends to the model',
  activationBytes:
    'what an agentloop records in one activation beside its events: transcript, model requests, tool calls, kv; more fails the request `output_limit`',
  emittedBytes:
    'results and events of one activation together, without results of distributed tools (`max_output_bytes`); a direct call counts as one activation',
  modelCalls: 'model calls of one activation, those of its tools included',
  toolSecs: 'time of one tool call, from its start record; then its box is killed and the call ends `timeout`',
  turnSecs: 'time of one turn',
  journalQueueBytes: 'records of all sessions that wait to be written; more answers `overloaded`',
  sessionQueueBytes: 'records of one session that wait to be written; more answers `overloaded`',
  liveBacklog: 'records that a slow reader of an event stream may lag behind before its stream is ended',
  hosts: 'applications that are registered to run tools; more answers `overloaded`',
  hostCommands:
    'calls, and as many cancellations, that wait for one application to take them; a further call ends `overloaded`',
  hostUnconnectedSecs: 'how long an application without sessions stays registered while it is not connected',
  environmentSecs:
    'one operation of an environment elsewhere, from its start to its answer; executions have the deadline of their call',
  environmentConnectSecs: 'lookup, connection and TLS of one operation of an environment elsewhere',
  environmentResponseBytes: 'what an environment elsewhere may answer to one operation',
  requestRetentionSecs: 'how long the answer of an Idempotency-Key is kept',
  concurrentExecutions: 'calls that run at once, of all sessions; as many agentloops beside them',
  executionWaitSecs: 'how long a call waits for a permit or a box before it ends `overloaded`',
  sessionExecutions: 'calls of one session that run at once',
  boxes: 'boxes at once; the longest idle one is killed first',
  warmBoxes: 'boxes that are kept started and unassigned; 0 = none',
  boxIdleSecs: 'how long a box waits for the next call of its tool before it is killed; 0 = it stays',
  linearMemoryBytes: 'WebAssembly memory of a guest; growing beyond it fails inside the guest',
  guestCpuSecs:
    'CPU time of one call, with what the supervisor spends on its files and requests; then its box is killed and the call ends `compute_limit`',
  guestHandles: 'resource handles that a guest holds at once',
  guestOpenFiles: 'files and directories that a guest holds open at once',
  guestFileOps: 'file operations of one call',
  guestReadBytes: 'bytes that one read of a guest gets at most; a longer read is shortened',
  hostCalls: 'calls of `brain:tool/host` in one tool call; each step of an HTTP request counts as one',
  egressRequests: 'HTTP requests of one tool call, those that were denied included',
  egressOpenRequests: 'HTTP requests that a tool call holds at once, with the answers that it has not dropped',
  egressRequestBytes: 'body of an HTTP request of a tool',
  egressResponseBytes: 'body of the answer, as it comes: compressed bodies are not unpacked',
  egressTimeoutSecs:
    'longest time to connect, to the head of an answer, and between two parts of its body; a tool may ask for less',
  workspaceBytes: 'bytes of all files of one workspace; then a write fails inside the guest',
  workspaceEntries: 'entries of one workspace',
  scratchBytes: 'bytes under `/scratch`, which is empty at each call and gone after it',
  transpiledBytes: 'JavaScript that a component may turn into',
  admissionSecs: 'time that admitting one component may take',
  admissions: 'uploads that are compiled at once; 16 more wait, others are answered `overloaded`',
  componentsBytes:
    'components and artifacts on disk; the least recently used artifacts go first, and are made again when needed; uploads never do',
  coreInstances: 'core instances of one component',
  modelSecs: 'time of one model call',
  modelConnectSecs: 'time to reach the provider of a model, TLS included',
  modelOutputBytes: 'answer of one model call, as JSON text',
  modelDeltaBytes: 'one live frame of an answer that is being written; a longer piece becomes several',
  modelStreamBytes: "body of a provider's answer, as it comes",
  modelFrameBytes: 'one event of a stream of a provider, beyond what it repeats of the request and of earlier events',
  modelErrorBytes: 'what is read of the body of a refusal of a provider',
}

/** Where 0 has a meaning of its own, the purpose says which. */
const ZERO_IS_SPECIAL: ReadonlySet<LimitName> = new Set(['warmBoxes', 'boxIdleSecs'])

const KIB = 1024
const STEPS = [
  [KIB ** 3, 'GiB'],
  [KIB ** 2, 'MiB'],
  [KIB, 'KiB'],
] as const

function shown(value: number, unit: string): string {
  if (!unit.startsWith('bytes')) return value.toLocaleString('en-US')
  const step = STEPS.find(([size]) => value >= size && value % size === 0)
  return step === undefined ? `${value} bytes` : `${value / step[0]} ${step[1]}`
}

/** The table of limits in docs/configuration.md, from src/contract/limits.ts. */
export function limitsTable(): string {
  const rows = (Object.keys(LIMITS) as LimitName[]).map((name) => {
    const { variable, default: fallback, least, unit } = LIMITS[name]
    const smallest = least > 0 ? shown(least, unit) : ZERO_IS_SPECIAL.has(name) ? '0' : '0 = no limit'
    return `| \`${variable}\` | ${shown(fallback, unit)} | ${unit} | ${smallest} | ${PURPOSE[name]} |`
  })
  return ['| variable | default | unit | least | what it bounds |', '|---|---|---|---|---|', ...rows].join('\n')
}
