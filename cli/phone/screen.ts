// Shows an operation to the user of a phone before the password is typed.
import type { ListedOperation } from '../../phone/handset.ts'
import type { OperationQr } from '../../phone/operations.ts'
import { printable } from '../output.ts'

const LABEL_WIDTH = 16

/** An operation as the phone shows it. */
export function drawOperation({ formData: { title, message, attributes = [] } }: ListedOperation): string {
  const rows = attributes.map((attribute) => {
    const value = attribute['valueFormatted'] ?? attribute['value'] ?? attribute['note'] ?? ''
    return `${String(attribute['label'] ?? '').padEnd(LABEL_WIDTH)}${String(value)}`
  })
  return frame([title, message, ...rows])
}

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
      return `${label.padEnd(LABEL_WIDTH)}${write?.(value) ?? value}`
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
  const width = Math.max(...lines.map((line) => line.length))
  const edge = `  +-${'-'.repeat(width)}-+`
  return [edge, ...lines.map((line) => `  | ${line.padEnd(width)} |`), edge].map((line) => `${line}\n`).join('')
}

/** One word of a shell. */
export const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`
