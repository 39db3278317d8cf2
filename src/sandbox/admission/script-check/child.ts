// Runs in a box, once: judges one script, which another box made, and rearranges it. It never runs what it parsed.
import { frame } from '../../wire/frames.ts'
import { readChannel, writeChannel } from '../child-channel.ts'
import { finishScript, type Finished } from './finish-script.ts'
import { FROM_SCRIPT_CHECK } from './protocol.ts'

const MAX_TEXT = 500
/** As boxes decode it, but that they would take what is no UTF-8. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function finished(script: Buffer): Finished {
  let text: string
  try {
    text = utf8.decode(script)
  } catch {
    return { fault: 'it is not UTF-8' }
  }
  try {
    return finishScript(text)
  } catch {
    return { fault: 'its nesting is too deep' } // the stack is what ends; whatever else it was, the script was not judged
  }
}

writeChannel(frame(FROM_SCRIPT_CHECK.READY))
const end = finished(readChannel(readChannel(4).readUInt32LE()))
writeChannel(
  'fault' in end
    ? frame(FROM_SCRIPT_CHECK.FAULT, end.fault.slice(0, MAX_TEXT))
    : frame(FROM_SCRIPT_CHECK.SCRIPT, end.script),
)
process.exit(0)
