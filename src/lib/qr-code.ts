// What fits into a QR code.
import { utf8 } from './bytes.ts'

/** Bytes that the largest QR code holds, with the least correction. */
export const QR_BYTES_MAX = 2_953

export const fitsQrCode = (text: string): boolean => utf8(text).length <= QR_BYTES_MAX
