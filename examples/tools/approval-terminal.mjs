import { createInterface } from 'node:readline'
import { printable } from '../tool-service.mjs'

/** So many digits of a digest are typed. Among 64 questions 48 bits that nobody could choose are one question's. */
const TYPED_DIGITS = 12

/** Shows each question on the terminal, and takes `yes DIGEST` and `no DIGEST` from it. */
export function openTerminal(approvals, { input, stopped }) {
  approvals.onChange((asked, state) => {
    const digest = asked.digest.slice(0, TYPED_DIGITS)
    if (state !== 'waiting') return console.log(`${digest}: ${state}`)
    console.log(`\nsession ${printable(asked.sessionId)} of ${printable(asked.tenantId)} asks:`)
    console.log(`  ${printable(JSON.stringify(asked.arguments))}`)
    console.log(`  sha256 ${asked.digest}`)
    console.log(`  type: yes ${digest}   or: no ${digest}`)
  })
  const lines = createInterface({ input })
  stopped.addEventListener('abort', () => {
    lines.close()
    input.destroy()
  })
  lines.on('line', (line) => {
    const [, answer, typed] = /^\s*(yes|no)\s+([0-9a-f]{12,64})\s*$/.exec(line) ?? []
    if (answer === undefined)
      return line.trim() && console.log('Cannot take this answer: type yes or no and the digest')
    const digest = approvals.waiting.find((asked) => asked.digest.startsWith(typed))?.digest
    if (digest === undefined || !approvals.answer(digest, answer))
      console.log(`Cannot answer "${typed}": no such question waits`)
  })
}
