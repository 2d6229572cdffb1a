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

/** A QR code has title, message and the signed data alone; phones take the data apart. */
export const drawScanned = ({ title, message, data }: OperationQr): string => frame([title, message, data])

/** What a QR code of free data says. */
export const drawFree = (data: string): string => frame(data.split('\n'))

function frame(given: readonly string[]): string {
  const lines = given.map(printable)
  const width = Math.max(...lines.map((line) => line.length))
  const edge = `  +-${'-'.repeat(width)}-+`
  return [edge, ...lines.map((line) => `  | ${line.padEnd(width)} |`), edge].map((line) => `${line}\n`).join('')
}

/** One word of a shell. */
export const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`
