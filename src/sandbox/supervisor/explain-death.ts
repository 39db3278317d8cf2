import { describeLimit, type Limits } from '../../contract/limits.ts'
import type { ComponentRole } from '../sandbox.ts'
import { type CallEnd, trapped } from './call.ts'

/** What V8 and the C++ runtime print before they give up for want of memory. */
const HOST_OUT_OF_MEMORY = /JavaScript heap out of memory|Allocation failed|Fatal process out of memory|std::bad_alloc/
/** What the runtimes of guest languages print before they abort. */
const GUEST_OUT_OF_MEMORY = /memory allocation of \d+ bytes failed|out of memory|MemoryError/i

/** Whether a guest that trapped had run out of memory, by its own words. */
export const isOutOfMemory = (stderr: Buffer): boolean => GUEST_OUT_OF_MEMORY.test(tail(stderr))

export const outOfMemory = (role: ComponentRole, limits: Limits): CallEnd =>
  trapped('memory_limit', `The ${role} needs more memory than ${describeLimit('linearMemoryBytes', limits)}`)

/** What it means for a call that its box ended without our doing. */
export function explainDeath(role: ComponentRole, how: string, stderr: Buffer, limits: Limits): CallEnd {
  if (HOST_OUT_OF_MEMORY.test(tail(stderr))) return outOfMemory(role, limits)
  return {
    type: 'lost',
    message: `The box of the ${role} ended in the middle of the call (${how}): whether its work was done is not known`,
  }
}

const TAIL_BYTES = 8192

const tail = (bytes: Buffer): string => bytes.toString('latin1', Math.max(0, bytes.length - TAIL_BYTES))
