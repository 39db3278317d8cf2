import { clipped, printable } from './printable.ts'

export type Progress = {
  /** Says what is being done now; `detail` lines of a long step replace each other on a terminal. */
  step(what: string): void
  detail(what: string): void
  /** The step is over; says how long it took. */
  done(result?: string): void
  /** Takes an unfinished step off the terminal. */
  stop(): void
}

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 100
const ERASE_LINE = '\r\u001b[K'

/** Steps of work, one after another: a moving line on a terminal, plain lines elsewhere. */
export function openProgress(out: NodeJS.WriteStream): Progress {
  const isTerminal = out.isTTY
  let step = ''
  let detail = ''
  let began = 0
  let frame = 0
  let timer: NodeJS.Timeout | undefined
  const seconds = (): string => `${((performance.now() - began) / 1000).toFixed(1)} s`
  const draw = (): void => {
    const text = `${FRAMES[frame++ % FRAMES.length]} ${step}${detail === '' ? '' : `: ${detail}`} (${seconds()})`
    out.write(`${ERASE_LINE}${clipped(text, Math.max(20, out.columns - 1))}`)
  }
  const stop = (): void => {
    if (timer !== undefined) out.write(ERASE_LINE)
    clearInterval(timer)
    timer = undefined
  }
  return {
    step(what) {
      stop()
      ;[step, detail, began] = [what, '', performance.now()]
      if (!isTerminal) return void out.write(`${what} …\n`)
      timer = setInterval(draw, FRAME_MS)
      draw()
    },
    detail(what) {
      detail = printable(what)
      if (isTerminal) draw()
      else out.write(`  ${detail}\n`)
    },
    done(result) {
      stop()
      const mark = isTerminal ? '✓ ' : '  '
      const said = isTerminal ? `${step}${result === undefined ? '' : `: ${result}`}` : (result ?? 'done')
      out.write(`${mark}${said} (${seconds()})\n`)
    },
    stop,
  }
}
