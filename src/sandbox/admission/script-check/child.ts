// Runs in a box, once: judges one script, which another box made. It parses, it never runs what it parsed.
import { writeSync } from 'node:fs'
import { frame } from '../../wire/frames.ts'
import { readChannel } from '../read-channel.ts'
import { faultOfScript } from './fault-of-script.ts'
import { FROM_SCRIPT_CHECK } from './protocol.ts'

const CHANNEL = 3
const MAX_TEXT = 500
/** As boxes decode it, but that they would take what is no UTF-8. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function faultOf(script: Buffer): string {
  let text: string
  try {
    text = utf8.decode(script)
  } catch {
    return 'it is not UTF-8'
  }
  try {
    return faultOfScript(text) ?? ''
  } catch {
    return 'its nesting is too deep' // the stack is what ends; whatever else it was, the script was not judged
  }
}

writeSync(CHANNEL, frame(FROM_SCRIPT_CHECK.READY))
writeSync(
  CHANNEL,
  frame(FROM_SCRIPT_CHECK.VERDICT, faultOf(readChannel(readChannel(4).readUInt32LE())).slice(0, MAX_TEXT)),
)
process.exit(0)
