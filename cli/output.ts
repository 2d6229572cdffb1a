// Lays out answers for people: lists as tables, objects as lines of name and value, times as dates.
import type { Answer } from './command.ts'

type Row = Readonly<Record<string, unknown>>

/** Lays out the list in the member `name` of an answer as a table, with these columns, or with all columns that a row fills. */
export function answerList(json: unknown, name: string, columns?: readonly string[]): Answer {
  const rows = (json as Record<string, readonly Row[] | undefined>)[name] ?? []
  return { json, text: rows.length === 0 ? 'none\n' : layOutTable(rows, columns) }
}

/** The text of a JSON value for a terminal, with a newline at its end. */
export function layOut(json: unknown): string {
  if (Array.isArray(json)) {
    if (json.length === 0) return 'none\n'
    return json.every(isRow) ? layOutTable(json) : json.map((value) => `${cell('', value)}\n`).join('')
  }
  return isRow(json) ? layOutObject(json) : `${cell('', json)}\n`
}

/** Lays out a table. Its columns come in the order in which rows have them first; a column that no row fills is left out. */
export function layOutTable(rows: readonly Row[], given: readonly string[] = columnsOf(rows)): string {
  const columns = given.filter((column) => rows.some((row) => cell(column, row[column]) !== ''))
  const lines = [
    columns.map((column) => column.toUpperCase()),
    ...rows.map((row) => columns.map((column) => shorten(cell(column, row[column]), CELL_MAX))),
  ]
  const widths = columns.map((_, index) => Math.max(...lines.map((line) => widthOf(line[index] ?? ''))))
  const pad = (line: readonly string[]): string => line.map((one, index) => padTo(one, widths[index] ?? 0)).join('  ')
  return lines.map((line) => `${pad(line).trimEnd()}\n`).join('')
}

/** Lays out an object: plain values as lines, lists of objects as tables, objects as indented lines. */
function layOutObject(object: Row): string {
  const members = Object.entries(object)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [printable(name), value] as const)
  const width = Math.max(...members.map(([name]) => widthOf(name)), 0)
  return members
    .map(([name, value]) => {
      if (Array.isArray(value) && value.length > 0 && value.every(isRow)) return `${name}:\n${indent(layOutTable(value))}`
      if (isRow(value)) return `${name}:\n${indent(layOutObject(value))}`
      return `${`${padTo(name, width)}  ${shorten(cell(name, value), VALUE_MAX)}`.trimEnd()}\n`
    })
    .join('')
}

const columnsOf = (rows: readonly Row[]): string[] => [...new Set(rows.flatMap((row) => Object.keys(row)))]

function cell(name: string, value: unknown): string {
  if (value === undefined || value === null) return ''
  // A message of a webhook that is due has 0 there, which is no time.
  if (name === 'nextAttemptAt' && value === 0) return 'at once'
  if (typeof value === 'number' && /^timestamp|At$/.test(name) && Math.abs(value) <= TIME_MAX)
    return new Date(value).toISOString()
  if (Array.isArray(value) && !value.some((one) => typeof one === 'object')) return printable(value.join(', '))
  return printable(typeof value === 'object' ? JSON.stringify(value) : String(value))
}

/**
 * Shortens a text for people: a key of some thousand characters, or a change of a template, would hide everything else. `--json` shows it
 * whole.
 */
const shorten = (text: string, max: number): string =>
  text.length <= max ? text : `${text.slice(0, max).replace(HALF, '')}… (${text.length} characters, --json shows them)`

/** The largest time of a JavaScript Date. A number that somebody wrote into a claim or an item may be larger. */
const TIME_MAX = 8.64e15
/** Limits in characters: of a cell of a table, and of a value in a line of its own. */
const [CELL_MAX, VALUE_MAX] = [80, 300]
/** The first half of a character of two halves, at the end of a text that was cut. */
const HALF = /[\uD800-\uDBFF]$/
/** The sign for a line break in a text. */
const LINE_END = ' ⏎ '

/**
 * Writes a text in one line. Replaces characters that would steer the terminal, or that nobody sees, by `\u{…}`; the console marks the same
 * (src/console/markup.ts).
 */
export const printable = (value: string): string =>
  value
    .replaceAll(/\r?\n/g, LINE_END)
    .replaceAll(
      /(?!\uFE0E|\uFE0F)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu,
      (char) => `\\u{${char.codePointAt(0)?.toString(16) ?? ''}}`,
    )

/** The columns of a terminal that a text takes. Signs of East Asia and emoji take two, and marks on a letter take none of their own. */
export const widthOf = (text: string): number =>
  ASCII.test(text) ? text.length : [...LETTERS.segment(text)].reduce((sum, { segment }) => sum + (WIDE.test(segment) ? 2 : 1), 0)

/** A text with spaces behind it, so that it takes `width` columns. */
export const padTo = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - widthOf(text)))

const ASCII = /^[ -~]*$/
const LETTERS = new Intl.Segmenter('en')
const WIDE =
  /\p{Emoji_Presentation}|\uFE0F|[\u1100-\u115F\u2E80-\uA4CF\uA960-\uA97F\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF01-\uFF60\uFFE0-\uFFE6\u{20000}-\u{3FFFD}]/u

const indent = (lines: string): string => lines.replaceAll(/^(?=.)/gm, '  ')

const isRow = (value: unknown): value is Row => typeof value === 'object' && value !== null && !Array.isArray(value)
