import { clip, messageOf } from '../../kernel/errors.ts'
import { setLongTimeout } from '../../kernel/long-timeout.ts'
import { BrainError } from '../brain-error.ts'
import { loadTool, type LoadedTool } from './load-tool.ts'
import { runTool, type ToolCall } from './run-tool.ts'
import { failureOf, type ToolEnd, type ToolService } from './tool-service.ts'

/** Where tools come from: the directory that packages are installed in, or a function that loads one itself. */
export type ToolSource = string | ((implementation: unknown) => Promise<LoadedTool>)

/** One call with the tool that is called, and what takes what it asks. */
export type ToolFrame = ToolCall & { readonly implementation: unknown; readonly service: ToolService }

/**
 * Loads a packaged tool and runs one call of it in this process: what `brain-tool-runtime` does in one of its own.
 *
 * @param signal cancels the call; its function hears of it
 * @returns how it ended; `tool_unavailable` where it could not be loaded. Never rejects.
 */
export async function runToolHandler(
  toolSource: ToolSource,
  { implementation, service, ...call }: ToolFrame,
  signal?: AbortSignal,
): Promise<ToolEnd> {
  const loading = loadedFrom(toolSource, implementation)
  const loaded = await Promise.race([loading.catch(unavailable), stopped(loading, call, signal)])
  return 'executable' in loaded ? runTool(loaded, call, service, signal) : loaded
}

/** @throws what loading fails with; TypeError for what was loaded and is no tool */
async function loadedFrom(toolSource: ToolSource, implementation: unknown): Promise<LoadedTool> {
  if (typeof toolSource === 'string') return loadTool(implementation, toolSource)
  const loaded = (await toolSource(implementation)) as LoadedTool | undefined
  if (loaded?.executable === undefined) throw new TypeError('Cannot load a tool: toolSource gave none')
  return loaded
}

/** A module may take as long as it likes to be evaluated, or for ever: nobody waits for it longer than for the call. */
async function stopped(
  loading: Promise<unknown>,
  { deadline_at_ms }: ToolCall,
  signal: AbortSignal | undefined,
): Promise<ToolEnd> {
  const { promise, resolve } = Promise.withResolvers<ToolEnd>()
  const cancel = (): void => resolve(failureOf({ status: 'cancelled' }))
  const timer =
    deadline_at_ms === undefined
      ? undefined
      : setLongTimeout(() => resolve(failureOf({ status: 'timeout' })), deadline_at_ms - Date.now())
  signal?.addEventListener('abort', cancel, { once: true })
  if (signal?.aborted === true) cancel()
  const forget = (): void => {
    timer?.clear()
    signal?.removeEventListener('abort', cancel)
  }
  loading.then(forget, forget)
  return promise.finally(forget)
}

function unavailable(error: unknown): ToolEnd {
  const code = error instanceof BrainError ? error.code : 'tool_unavailable'
  return { type: 'failure', code, message: clip(messageOf(error)), retryable: false }
}
