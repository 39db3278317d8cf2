const scope = globalThis as {
  process?: { env?: object }
  TextDecoder?: typeof TextDecoder
  WebAssembly?: { promising?: (exported: unknown) => unknown }
}

/**
 * Makes globals that jco's code leans on exact and quick, before any of it is loaded:
 *
 * - It asks the environment for a debug switch. An empty object answers ten times faster than Node's own (and a box has
 *   no environment to show).
 * - It makes a suspendable twin of some exports of each instance. Nothing here suspends: the export is its own twin.
 * - It reads a guest's strings with `new TextDecoder()`, which drops a leading U+FEFF and turns malformed UTF-8 into
 *   U+FFFD. The canonical ABI wants the first kept and a trap for the second (cases D-02).
 */
export function settleEngine(): void {
  if (scope.process !== undefined) scope.process.env = Object.create(null)
  if (scope.WebAssembly !== undefined) scope.WebAssembly.promising = (exported) => exported
  scope.TextDecoder = class ExactTextDecoder extends TextDecoder {
    constructor(...[label, options]: ConstructorParameters<typeof TextDecoder>) {
      super(label, { fatal: true, ignoreBOM: true, ...options })
    }
  }
}
