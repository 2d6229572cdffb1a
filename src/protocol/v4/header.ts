// Checks the values in the headers of v4 (v4 §6).
import { parseBase64, toBase64 } from '../../lib/base64.ts'
import { createHeaderParsers } from '../wire/header.ts'
import { VERSION } from './versions.ts'

export const { parseAuthorizationHeader, parseTokenHeader, parseEncryptionHeader } = createHeaderParsers({
  factorsName: 'pa_auth_code_type',
  codeName: 'pa_auth_code',
  mayRepeatNames: false,
  isVersion: (text) => text === VERSION,
  parseBytes,
  // The length is not compared with the factors here: a code of the wrong length fails verification, and counts as a failure.
  isCode: (text) => CODE_LENGTHS.some((length) => parseBytes(text, length)),
  // The digest covers the text of the timestamp: without a leading zero the number has only one.
  timestamp: /^[1-9]\d{8,14}$/,
})

/** Strict: the nonce enters what a code covers as text, so only the one text that encodes the bytes is accepted (v4 §7.1). */
function parseBytes(text: string, length: number): Uint8Array | undefined {
  const bytes = parseBase64(text, length)
  return bytes && toBase64(bytes) === text ? bytes : undefined
}

const CODE_LENGTHS = [32, 64, 96]
