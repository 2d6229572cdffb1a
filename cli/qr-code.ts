// QR codes in the terminal, and as pictures.
import { renderSVG, renderUnicodeCompact } from 'uqr'
import { Fault, usageFault } from './fault.ts'

/** Characters that fit into the largest QR code with the least correction. */
const CHARACTERS_MAX = 2953

const DRAWINGS: ReadonlyMap<string, typeof renderSVG> = new Map([
  ['terminal', renderUnicodeCompact],
  ['svg', renderSVG],
])

/** A QR code of the text for the terminal, with a newline at its end. */
export const drawQrCode = (text: string): string => `${renderUnicodeCompact(text, { ecc: 'L' })}\n`

/** Draws as `terminal` or `svg`. Throws a Fault for another drawing, and with `hint` for a text that is too long. */
export function drawAs(drawing: string, text: string, hint: string): string {
  const draw = DRAWINGS.get(drawing)
  if (draw === undefined) throw usageFault(`--qr is one of ${[...DRAWINGS.keys()].join(', ')}`)
  if (text.length > CHARACTERS_MAX) throw new Fault('refused', `${text.length} characters are too long for a QR code: ${hint}`)
  return `${draw(text, { ecc: 'L' })}\n`
}
