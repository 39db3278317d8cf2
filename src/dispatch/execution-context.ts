import type { Logger } from '../kernel/logger.ts'
import type { JsonObject } from '../kernel/json.ts'
import type { SchemaChecker } from '../contract/schema-checker.ts'
import type { ClaimKey, StoredAnswer } from '../journal/journal.ts'
import type { SessionLog } from '../journal/session-log.ts'
import type { Budget } from './budget.ts'
import type { CallLogs } from './call-log.ts'
import type { ToolModel } from './tool-model.ts'

/** What one call of a tool is made of. */
export type ExecutionContext = {
  readonly log: SessionLog
  readonly schemas: SchemaChecker
  readonly callLogs: CallLogs
  readonly model: ToolModel
  readonly budget: Budget
  readonly sequence: number
  readonly callId: string
  readonly tool: string
  readonly environment: string
  readonly outputSchema: JsonObject | undefined
  /** Control of environments within the tool's grants. */
  readonly environments: (requestText: string) => Promise<string>
  /** Answers the idempotency claim of a direct call in the append that releases it (design 3). */
  readonly settle: (ClaimKey & { readonly answer: StoredAnswer }) | undefined
  readonly logger: Logger
  /** Told once, after the call has ended. */
  readonly onEnded: () => void
}
