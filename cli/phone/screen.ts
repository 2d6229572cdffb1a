// Shows an operation to the user of a phone before the password is typed.
import type { ListedOperation } from '../../phone/handset.ts'
import type { OperationQr } from '../../phone/operations.ts'
import { padTo, printable, widthOf } from '../output.ts'

const LABEL_WIDTH = 15

/** An operation as the phone shows it. */
export const drawOperation = ({ formData: { title, message, attributes = [] } }: ListedOperation): string =>
  frame([title, message, ...attributes.map((attribute) => drawRow(String(attribute['label'] ?? ''), valueOf(attribute)))])

const drawRow = (label: string, value: string): string => `${padTo(label, LABEL_WIDTH)} ${value}`

/** What a row says beside its label. A row has only the members of its kind (mobile-token §5). */
function valueOf({ partyInfo, ...row }: Readonly<Record<string, unknown>>): string {
  const members: Readonly<Record<string, unknown>> = { ...row, ...(partyInfo as Readonly<Record<string, unknown>> | undefined) }
  return VALUES.flatMap((name) => (members[name] === undefined ? [] : [String(members[name])])).join(' · ')
}

const VALUES = [
  'valueFormatted',
  'sourceValueFormatted',
  'targetValueFormatted',
  'value',
  'note',
  'title',
  'message',
  'name',
  'description',
  'thumbnailUrl',
]

/**
 * Draws the contents of a QR code: title, message, and the signed data split as phones do (cloud §5). Data of no known form are shown
 * unchanged.
 */
export const drawScanned = ({ title, message, data }: OperationQr): string =>
  frame([title, message, ...(readFields(data) ?? [data])])

/** The fields of operation data, a line each; undefined for a text of another form. */
function readFields(data: string): string[] | undefined {
  const [header = '', ...fields] = data.match(/(?:\\[^]|[^*\\])+|(?<=\*)(?=\*|$)/g) ?? []
  if (!/^A\d{1,2}$/.test(header)) return undefined
  return fields
    .filter((field) => field !== '')
    .map((field) => {
      const letter = field.charAt(0)
      const value = field.slice(1).replaceAll(/\\([^])/g, (_, escaped: string) => (escaped === 'n' ? ' ' : escaped))
      const { label, write } = FIELDS[letter] ?? { label: letter }
      return drawRow(label, write?.(value) ?? value)
    })
}

interface Field {
  readonly label: string
  readonly write?: (value: string) => string
}

const FIELDS: Readonly<Record<string, Field>> = {
  A: { label: 'Amount', write: (value) => value.replace(/^(.*\d)([A-Z]{3})$/, '$1 $2') },
  I: { label: 'To account', write: (value) => value.replace(',', ', BIC ') },
  Q: { label: 'To account' },
  D: { label: 'Date', write: (value) => value.replace(/^(\d{4})(\d\d)(\d\d)$/, '$1-$2-$3') },
  R: { label: 'Reference' },
  N: { label: 'Note' },
  T: { label: 'Text' },
}

/** Draws the contents of a QR code of free data. */
export const drawFree = (data: string): string => frame(data.split('\n'))

function frame(given: readonly string[]): string {
  const lines = given.map(printable)
  const width = Math.max(...lines.map(widthOf))
  const edge = `  +-${'-'.repeat(width)}-+`
  return [edge, ...lines.map((line) => `  | ${padTo(line, width)} |`), edge].map((line) => `${line}\n`).join('')
}

/** One word of a shell. */
export const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`
