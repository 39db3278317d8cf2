import type { BoxedProgram } from '../launch/spawn-boxed.ts'
import type { Setup } from '../wire/server-frames.ts'

const MIB = 1024 * 1024
const PAGE_BYTES = 64 * 1024
/** Private data of a Node that runs nothing, V8's code range of 512 MiB included. */
const ENGINE_BYTES = 564 * MIB
const HEAP_MIB = 128
/**
 * V8 counts the memory of dead instances as well, and collects when they hold half of what its heap may grow to, or 64 MiB
 * more than at its last collection, which is just before the box would do so itself (box/main.ts): every small tool paid
 * for both. Counted into the limit of the heap, with a limit of twice the size, they leave that to the box. What the heap
 * really takes is bound by RLIMIT_DATA.
 */
const COLLECTED_BY_THE_BOX = ['--external-memory-accounted-in-global-limit', `--max-old-space-size=${2 * HEAP_MIB}`]
/**
 * Half of V8's young generation. It holds what all instances between two collections leave behind: with the default of
 * 1 to 16 MiB scavenges copy instances that are dead, because dead ones in the old space still point at them, and V8
 * collects fully on its own between our own collections; together a fifth of a box's CPU. Unused pages take no memory.
 */
const SEMI_SPACE_MIB = 32
/** Compiled code, messages, the C heap. */
const WORK_BYTES = 128 * MIB
/** The kernel's limit is for a box that the supervisor cannot stop any more; loading and making instances counts too. */
const CPU_BACKSTOP = 4
const CPU_BACKSTOP_SECS = 15

/** How every box of this setup is started. */
export function boxProgram(
  setup: Setup,
  scripts: { readonly launcher: Buffer; readonly program: Buffer },
): BoxedProgram {
  const { linearMemoryBytes, guestCpuSecs } = setup.limits
  return {
    ...scripts,
    level: setup.level,
    nodeFlags: [
      '--expose-gc',
      `--wasm-max-mem-pages=${Math.max(1, Math.floor(linearMemoryBytes / PAGE_BYTES))}`,
      '--wasm-max-table-size=65536',
      ...COLLECTED_BY_THE_BOX,
      // Marking a little at a time spares pauses that nobody in a box feels, for an eighth of its CPU.
      '--no-incremental-marking',
      `--min-semi-space-size=${SEMI_SPACE_MIB}`,
      `--max-semi-space-size=${SEMI_SPACE_MIB}`,
      '--stack-size=984',
    ],
    limits: {
      // Instances that are dead but not yet collected hold up to half of the budget (box/main.ts).
      dataBytes: ENGINE_BYTES + (HEAP_MIB + 2 * SEMI_SPACE_MIB) * MIB + WORK_BYTES + Math.ceil(linearMemoryBytes * 1.5),
      cpuSecs: guestCpuSecs === 0 ? 0 : guestCpuSecs * CPU_BACKSTOP + CPU_BACKSTOP_SECS,
    },
  }
}
