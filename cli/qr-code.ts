// Draws QR codes in the terminal, and as pictures.
import { encodeQR } from 'qr'
import { Fault, usageFault } from './fault.ts'

/** Bytes that fit into the largest QR code with the least correction. */
const BYTES_MAX = 2953
const OPTIONS = { ecc: 'low', border: 1 } as const
const WHITE_GROUND = '<path fill="#fff" d="M0 0h999v999H0Z"/>'

const DRAWINGS: ReadonlyMap<string, (text: string) => string> = new Map([
  ['terminal', (text: string) => encodeQR(text, 'ascii', OPTIONS).trimEnd()],
  ['svg', (text: string) => encodeQR(text, 'svg', OPTIONS).replace('>', `>${WHITE_GROUND}`)],
])

/** A QR code of the text for the terminal, with a newline at its end. */
export const drawQrCode = (text: string): string => drawAs('terminal', text, 'it is drawn whole or not at all')

/** Draws as `terminal` or `svg`. Throws a Fault for another drawing, and with `hint` for a text that is too long. */
export function drawAs(drawing: string, text: string, hint: string): string {
  const draw = DRAWINGS.get(drawing)
  if (draw === undefined) throw usageFault(`--qr is one of ${[...DRAWINGS.keys()].join(', ')}`)
  const bytes = Buffer.byteLength(text)
  if (bytes > BYTES_MAX) throw new Fault('refused', `${bytes} bytes are too long for a QR code: ${hint}`)
  return `${draw(text)}\n`
}
