import { Option } from 'commander'

/** Where the running server is that a command speaks to: what the option says, else the variable, else where it listens by default. */
export const urlOption = (): Option =>
  new Option('--url <url>', 'the running server').env('BRAIN_URL').default('http://127.0.0.1:8080')
