// Checks the values in the headers of v3 (v3 §5.2).
import { parseBase64 } from '../../lib/base64.ts'
import { createHeaderParsers } from '../wire/header.ts'
import { capabilitiesOf } from './versions.ts'

export const { parseAuthorizationHeader, parseTokenHeader, parseEncryptionHeader } = createHeaderParsers({
  factorsName: 'pa_signature_type',
  codeName: 'pa_signature',
  mayRepeatNames: true,
  isVersion: (text) => capabilitiesOf(text) !== undefined,
  parseBytes: parseBase64,
  // The form is not compared with the version here: a code of the wrong form fails verification, and counts as a failure.
  isCode: (text) => DECIMAL_CODE.test(text) || CODE_LENGTHS.some((length) => parseBase64(text, length)),
  timestamp: /^\d{9,15}$/,
})

const DECIMAL_CODE = /^\d{8}(-\d{8}){0,2}$/
const CODE_LENGTHS = [16, 32, 48]
