import { Option } from 'commander'

const collect = (value: string, all: readonly string[] = []): readonly string[] => [...all, value]

/** What a tool may hold. */
export const GRANTS = [
  new Option(
    '--secret <name>',
    'give it the value of this variable as the file /secrets/NAME; may be repeated',
  ).argParser(collect),
  new Option('--net <origin>', 'let it reach this origin, such as https://api.example; may be repeated').argParser(
    collect,
  ),
]

/** What a tool is given, and what it is called with. */
export const SETTING = [
  new Option('--input <json>', 'the input: JSON, @FILE, or - for standard input; default {}'),
  new Option('--options <json>', 'the options that the tool is placed with: JSON, @FILE or -; default {}'),
  new Option('--workspace <directory>', 'give it this directory as /workspace; DIRECTORY:ro for reading only'),
  new Option('--scratch', 'give it a directory of its own as /scratch'),
  ...GRANTS,
  new Option('--deadline <duration>', 'stop it then: 250ms, 5s, 2m; default: BRAIN_MAX_TOOL_SECS'),
  new Option('--model <model>', 'the model that it may call: scripted:@FILE, or PROVIDER:NAME'),
  new Option('--api-key-env <variable>', 'the variable that holds the key of the model'),
]
export const JSON_LINES = ['--json', 'for programs: a line of JSON each'] as const
