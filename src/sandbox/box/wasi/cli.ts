import type * as Environment from '@bytecodealliance/preview2-shim/interfaces/wasi-cli-environment'
import type * as ExitInterface from '@bytecodealliance/preview2-shim/interfaces/wasi-cli-exit'
import { Exit } from './ending.ts'
import type { CurrentInvocation, Invocation } from './invocation.ts'
import { closed, InputStream, OutputStream } from './streams.ts'

/** All that a guest finds as its command line: no name of a session, file or machine. */
const ARGUMENTS = ['tool']

const leave = (success: boolean): never => {
  throw new Exit(success)
}

/** Never waits, and never fails: what does not fit any more is dropped. */
function output(invocation: Invocation, fd: 1 | 2): OutputStream {
  const { channel, outputLeft } = invocation
  return new OutputStream(invocation, {
    write(bytes) {
      const kept = bytes.subarray(0, outputLeft[fd])
      outputLeft[fd] -= kept.length
      if (kept.length > 0) channel.writeOutput(fd, kept)
    },
  })
}

/** No guest has a terminal. */
class TerminalInput {}
class TerminalOutput {}

/** `wasi:cli`: no environment variables, one fixed argument, no input, and output that nobody waits for. */
export function createCli(current: CurrentInvocation) {
  const noTerminal = (): undefined => {
    current.get()
    return undefined
  }
  return {
    environment: {
      getEnvironment() {
        current.get()
        return []
      },
      getArguments() {
        current.get()
        return [...ARGUMENTS]
      },
      /**
       * For a libc that asks. Today's begin at "/" without asking, where no path is granted: a tool that uses relative
       * paths calls `chdir("/workspace")` first (Rust `set_current_dir`, Python `os.chdir`). A second preopen called "."
       * would spare that, and is no way out: libc would look for every absolute path there, too, and Python would import
       * modules that it misses from the workspace ("/bundled/x.py"), where others write.
       */
      initialCwd: () => (current.get().mounts.includes('/workspace') ? '/workspace' : '/'),
    } satisfies typeof Environment,
    exit: {
      exit(status: ExitInterface.Result<void, void>) {
        current.get()
        leave(status.tag === 'ok')
      },
      exitWithCode(code: number) {
        current.get()
        leave(code === 0)
      },
    } satisfies typeof ExitInterface & { exitWithCode(code: number): void },
    stdin: { getStdin: () => new InputStream(current.get(), closed) },
    stdout: { getStdout: () => output(current.get(), 1) },
    stderr: { getStderr: () => output(current.get(), 2) },
    terminalInput: { TerminalInput },
    terminalOutput: { TerminalOutput },
    terminalStdin: { getTerminalStdin: noTerminal },
    terminalStdout: { getTerminalStdout: noTerminal },
    terminalStderr: { getTerminalStderr: noTerminal },
  }
}
