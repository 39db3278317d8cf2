/**
 * Every bound that an operator may set, with its variable and default (contract 8, A13). Rooms read the values from
 * `Limits`; `config` fills it in; `GET /v1/limits` shows it. 0 means unlimited where `least` is 0.
 */
type Limit = { readonly variable: string; readonly default: number; readonly least: number; readonly unit: string }

const KIB = 1024
const MIB = 1024 * KIB
const GIB = 1024 * MIB

export const LIMITS = {
  requestBytes: { variable: 'BRAIN_MAX_REQUEST_BYTES', default: 32 * MIB, least: 1024, unit: 'bytes' },
  packageBytes: { variable: 'BRAIN_MAX_PACKAGE_BYTES', default: 32 * MIB, least: 1024, unit: 'bytes' },
  executionInputBytes: { variable: 'BRAIN_MAX_EXECUTION_INPUT_BYTES', default: 32 * MIB, least: 1024, unit: 'bytes' },
  executionOutputBytes: { variable: 'BRAIN_MAX_EXECUTION_OUTPUT_BYTES', default: MIB, least: 1024, unit: 'bytes' },
  agentloopRequestBytes: {
    variable: 'BRAIN_MAX_AGENTLOOP_REQUEST_BYTES',
    default: 8 * MIB,
    least: 64 * KIB,
    unit: 'bytes per host call of an agentloop',
  },
  activationBytes: {
    variable: 'BRAIN_MAX_ACTIVATION_BYTES',
    default: 64 * MIB,
    least: 0,
    unit: 'bytes recorded by an activation',
  },
  emittedBytes: { variable: 'BRAIN_MAX_EMITTED_BYTES', default: MIB, least: 0, unit: 'bytes' },
  modelCalls: { variable: 'BRAIN_MAX_MODEL_CALLS', default: 128, least: 0, unit: 'calls' },
  toolSecs: { variable: 'BRAIN_MAX_TOOL_SECS', default: 120, least: 0, unit: 'seconds' },
  turnSecs: { variable: 'BRAIN_MAX_TURN_SECS', default: 1800, least: 0, unit: 'seconds' },
  journalQueueBytes: { variable: 'BRAIN_MAX_JOURNAL_QUEUE_BYTES', default: 64 * MIB, least: MIB, unit: 'bytes' },
  sessionQueueBytes: { variable: 'BRAIN_MAX_SESSION_QUEUE_BYTES', default: 8 * MIB, least: 64 * KIB, unit: 'bytes' },
  liveBacklog: { variable: 'BRAIN_MAX_LIVE_BACKLOG', default: 1024, least: 1, unit: 'records' },
  hosts: { variable: 'BRAIN_MAX_HOSTS', default: 4096, least: 0, unit: 'hosts' },
  hostCommands: { variable: 'BRAIN_MAX_HOST_COMMANDS', default: 128, least: 1, unit: 'commands per host' },
  hostUnconnectedSecs: { variable: 'BRAIN_HOST_UNCONNECTED_SECS', default: 60, least: 1, unit: 'seconds' },
  environmentSecs: { variable: 'BRAIN_MAX_ENVIRONMENT_SECS', default: 120, least: 0, unit: 'seconds' },
  environmentConnectSecs: { variable: 'BRAIN_MAX_ENVIRONMENT_CONNECT_SECS', default: 5, least: 1, unit: 'seconds' },
  environmentResponseBytes: {
    variable: 'BRAIN_MAX_ENVIRONMENT_RESPONSE_BYTES',
    default: 32 * MIB,
    least: 1024,
    unit: 'bytes',
  },
  requestRetentionSecs: { variable: 'BRAIN_REQUEST_RETENTION_SECS', default: 86_400, least: 1, unit: 'seconds' },
  concurrentExecutions: { variable: 'BRAIN_MAX_CONCURRENT_EXECUTIONS', default: 32, least: 1, unit: 'executions' },
  executionWaitSecs: { variable: 'BRAIN_MAX_EXECUTION_WAIT_SECS', default: 10, least: 1, unit: 'seconds' },
  sessionExecutions: { variable: 'BRAIN_MAX_SESSION_EXECUTIONS', default: 8, least: 1, unit: 'executions' },
  boxes: { variable: 'BRAIN_MAX_BOXES', default: 64, least: 1, unit: 'processes' },
  warmBoxes: { variable: 'BRAIN_ENV_WORKERS', default: 2, least: 0, unit: 'processes' },
  boxIdleSecs: { variable: 'BRAIN_ENV_BOX_IDLE_SECS', default: 30, least: 0, unit: 'seconds' },
  linearMemoryBytes: {
    variable: 'BRAIN_MAX_LINEAR_MEMORY_BYTES',
    default: 128 * MIB,
    least: MIB,
    unit: 'bytes per invocation',
  },
  guestCpuSecs: { variable: 'BRAIN_MAX_GUEST_CPU_SECS', default: 60, least: 0, unit: 'seconds per invocation' },
  guestHandles: { variable: 'BRAIN_MAX_GUEST_HANDLES', default: 1024, least: 16, unit: 'handles per invocation' },
  guestOpenFiles: { variable: 'BRAIN_MAX_GUEST_OPEN_FILES', default: 64, least: 4, unit: 'files per invocation' },
  guestFileOps: {
    variable: 'BRAIN_MAX_GUEST_FILE_OPS',
    default: 2_000_000,
    least: 0,
    unit: 'operations per invocation',
  },
  guestReadBytes: { variable: 'BRAIN_MAX_GUEST_READ_BYTES', default: MIB, least: 4096, unit: 'bytes per read' },
  hostCalls: { variable: 'BRAIN_MAX_HOST_CALLS', default: 100_000, least: 1, unit: 'calls per invocation' },
  egressRequests: {
    variable: 'BRAIN_MAX_EGRESS_REQUESTS',
    default: 1000,
    least: 1,
    unit: 'HTTP requests per invocation',
  },
  egressOpenRequests: {
    variable: 'BRAIN_MAX_EGRESS_OPEN_REQUESTS',
    default: 32,
    least: 1,
    unit: 'HTTP requests at once per invocation',
  },
  egressRequestBytes: {
    variable: 'BRAIN_MAX_EGRESS_REQUEST_BYTES',
    default: 32 * MIB,
    least: KIB,
    unit: 'bytes per HTTP request',
  },
  egressResponseBytes: {
    variable: 'BRAIN_MAX_EGRESS_RESPONSE_BYTES',
    default: 32 * MIB,
    least: KIB,
    unit: 'bytes per HTTP response',
  },
  egressTimeoutSecs: { variable: 'BRAIN_MAX_EGRESS_TIMEOUT_SECS', default: 120, least: 1, unit: 'seconds' },
  workspaceBytes: { variable: 'BRAIN_MAX_WORKSPACE_BYTES', default: GIB, least: 4096, unit: 'bytes per workspace' },
  workspaceEntries: {
    variable: 'BRAIN_MAX_WORKSPACE_ENTRIES',
    default: 65_536,
    least: 16,
    unit: 'files and directories per workspace',
  },
  scratchBytes: { variable: 'BRAIN_MAX_SCRATCH_BYTES', default: 64 * MIB, least: 4096, unit: 'bytes per invocation' },
  transpiledBytes: { variable: 'BRAIN_MAX_TRANSPILED_BYTES', default: 8 * MIB, least: 64 * KIB, unit: 'bytes' },
  admissionSecs: { variable: 'BRAIN_MAX_ADMISSION_SECS', default: 15, least: 1, unit: 'seconds' },
  admissions: { variable: 'BRAIN_MAX_ADMISSIONS', default: 2, least: 1, unit: 'at once' },
  componentsBytes: { variable: 'BRAIN_MAX_COMPONENTS_BYTES', default: 4 * GIB, least: MIB, unit: 'bytes' },
  coreInstances: { variable: 'BRAIN_MAX_CORE_INSTANCES', default: 256, least: 1, unit: 'instances' },
  modelSecs: { variable: 'BRAIN_MAX_MODEL_SECS', default: 120, least: 1, unit: 'seconds' },
  modelConnectSecs: { variable: 'BRAIN_MAX_MODEL_CONNECT_SECS', default: 10, least: 0, unit: 'seconds' },
  modelOutputBytes: { variable: 'BRAIN_MAX_MODEL_OUTPUT_BYTES', default: 4 * MIB, least: 0, unit: 'bytes' },
  modelDeltaBytes: { variable: 'BRAIN_MAX_MODEL_DELTA_BYTES', default: 64 * KIB, least: 0, unit: 'bytes' },
  modelStreamBytes: { variable: 'BRAIN_MAX_MODEL_STREAM_BYTES', default: 32 * MIB, least: 0, unit: 'bytes' },
  modelFrameBytes: { variable: 'BRAIN_MAX_MODEL_FRAME_BYTES', default: 256 * KIB, least: 0, unit: 'bytes' },
  modelErrorBytes: { variable: 'BRAIN_MAX_MODEL_ERROR_BYTES', default: 16 * KIB, least: 0, unit: 'bytes' },
} as const satisfies Record<string, Limit>

export type LimitName = keyof typeof LIMITS
/** The limits in force. */
export type Limits = Readonly<Record<LimitName, number>>

export const defaultLimits: Limits = Object.fromEntries(
  Object.entries(LIMITS).map(([name, limit]) => [name, limit.default]),
) as Record<LimitName, number>

/** How a message names a limit: its value and the variable that changes it (contract A27). */
export const describeLimit = (name: LimitName, limits: Limits): string =>
  `${limits[name]} ${LIMITS[name].unit} (${LIMITS[name].variable})`
