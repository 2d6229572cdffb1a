// QR codes, with the least correction.
import { encodeQR } from 'qr'
import { QR_BYTES_MAX } from '../domain/operation/form.ts'
import { utf8 } from '../lib/bytes.ts'

/** Whether a QR code holds a text. */
export const fitsQrCode = (text: string): boolean => utf8(text).length <= QR_BYTES_MAX

/** An SVG of the code of a text that fits, with a margin of two modules and no ground of its own. */
export const drawQrCode = (text: string): string => encodeQR(text, 'svg', { ecc: 'low', border: 2 })
