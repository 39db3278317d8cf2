// What server and script check say to each other over fd 3. The server sends u32 length of the script and the script.
import { READY } from '../child-ready.ts'

/** Child → server, frames of wire/frames.ts. */
export const FROM_SCRIPT_CHECK = {
  /** It runs. */
  READY,
  /** An answer, and the end: the script for boxes. */
  SCRIPT: 2,
  /** An answer, and the end: how the script differs from what the generator emits. */
  FAULT: 3,
} as const
