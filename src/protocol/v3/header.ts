// Checks the values in the headers of v3, and the digests of token headers (v3 §5.2, §11.2).
import { hmac } from '../../crypto/hash.ts'
import { parseBase64 } from '../../lib/base64.ts'
import { concat, equalConstantTime, utf8 } from '../../lib/bytes.ts'
import type { TokenHeader } from '../protocol.ts'
import { createHeaderParsers } from '../wire/header.ts'
import { capabilitiesOf } from './versions.ts'

export const { parseAuthorizationHeader, parseTokenHeader, parseEncryptionHeader } = createHeaderParsers({
  factorsName: 'pa_signature_type',
  codeName: 'pa_signature',
  mayRepeatNames: true,
  isVersion: (text) => capabilitiesOf(text) !== undefined,
  parseBytes: parseBase64,
  // The form is not compared with the version here: a code of the wrong form fails verification, and counts as a failure.
  isCode: (text) => DECIMAL_CODE.test(text) || CODE_LENGTHS.includes(parseBase64(text)?.length ?? 0),
  timestamp: /^\d{9,15}$/,
})

const DECIMAL_CODE = /^\d{8}(-\d{8}){0,2}$/
const CODE_LENGTHS = [16, 32, 48]

/** Whether the header's digest matches its nonce and timestamp. `tokenSecret`: 16 bytes. */
export const verifyTokenDigest = (tokenSecret: Uint8Array, header: TokenHeader): boolean =>
  equalConstantTime(computeTokenDigest(tokenSecret, header), header.digest)

/** The digest of a token header, 32 bytes. The timestamp enters in decimal without leading zeros. */
export function computeTokenDigest(tokenSecret: Uint8Array, header: Omit<TokenHeader, 'tokenId' | 'digest'>): Uint8Array {
  const { version, nonce, timestamp } = header
  const binding = capabilitiesOf(version)?.versionBinding ? `&${version}` : ''
  return hmac(tokenSecret, concat(nonce, utf8(`&${timestamp}${binding}`)))
}

/** Whether the version has the short time window for tokens (v3 §14). */
export const hasShortTokenWindow = (version: string): boolean => capabilitiesOf(version)?.timestamp ?? false
