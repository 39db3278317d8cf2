import type { Json } from '../../kernel/json.ts'
import type { PlacedTool } from './session-request.ts'

/** What the demo puts into the workspace. */
export const FILES: Readonly<Record<string, string>> = {
  'sales.csv': [
    'date,region,product,amount',
    '2026-03-01,north,tea,120.50',
    '2026-03-01,south,coffee,310.00',
    '2026-03-02,north,coffee,99.90',
    '2026-03-02,west,tea,45.25',
    '2026-03-03,south,tea,205.10',
    '2026-03-03,west,coffee,not known',
    '',
  ].join('\n'),
  'notes/readme.txt': 'Figures of the first week of March.\n',
  'notes/todo.txt': 'Ask the west branch for its missing amount.\n',
}

export const MESSAGE = 'What is in the workspace, and how much did each region sell?'

/** Names and options under which the demo places its tools. */
export function placedTools(ids: { readonly inspect: string; readonly csvReport?: string }): readonly PlacedTool[] {
  const inspect = { name: 'inspect', id: ids.inspect, configuration: { depth: 2 } }
  return ids.csvReport === undefined ? [inspect] : [inspect, { name: 'csv_report', id: ids.csvReport }]
}

const LOOK = { text: 'I look at what is there first.', tool_calls: [{ name: 'inspect', input: { path: '.' } }] }
const REPORT = {
  text: 'There is a table of sales. I add it up by region.',
  tool_calls: [{ name: 'csv_report', input: { path: 'sales.csv', group_by: 'region', sum: 'amount' } }],
}

/** What the scripted model says, call by call (contract A23). */
export const scriptFor = (hasReport: boolean): Json =>
  hasReport
    ? [LOOK, REPORT, { text: 'South sold most. The whole table is in sales.report.md, beside the CSV.' }]
    : [LOOK, { text: 'There is a table of sales and a folder of notes. The tool that adds tables up was not built.' }]
