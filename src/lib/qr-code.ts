// QR codes, with the least correction.
import { encodeQR } from 'qr'
import { utf8 } from './bytes.ts'

/** Bytes that the largest QR code holds. */
export const QR_BYTES_MAX = 2_953

export const fitsQrCode = (text: string): boolean => utf8(text).length <= QR_BYTES_MAX

/** An SVG of the code of a text that fits, with a margin of two modules and no ground of its own. */
export const drawQrCode = (text: string): string => encodeQR(text, 'svg', { ecc: 'low', border: 2 })
