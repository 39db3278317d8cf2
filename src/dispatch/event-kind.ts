import { BrainError } from '../kernel/errors.ts'
import { isIdentifier } from '../kernel/ids.ts'
import { isReservedKind } from '../journal/record.ts'

/** @throws BrainError `invalid_request` for what is no kind of an extension's event (contract 3.2). */
export function assertEventKind(kind: string): void {
  if (isIdentifier(kind) && !isReservedKind(kind)) return
  const reason = isIdentifier(kind)
    ? 'this kind is reserved for Brain'
    : 'an event kind is an identifier of letters, digits and . _ : - (at most 128)'
  throw new BrainError('invalid_request', `Cannot emit ${JSON.stringify(kind.slice(0, 128))}: ${reason}`)
}
