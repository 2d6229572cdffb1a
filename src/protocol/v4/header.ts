// Checks the values in the headers of v4, and the digests of token headers (v4 §6, §9.9).
import { createKmac } from '../../crypto/kmac.ts'
import { parseBase64, toBase64 } from '../../lib/base64.ts'
import { concat, equalConstantTime, utf8 } from '../../lib/bytes.ts'
import type { TokenHeader } from '../protocol.ts'
import { createHeaderParsers } from '../wire/header.ts'
import { VERSION } from './versions.ts'

export const { parseAuthorizationHeader, parseTokenHeader, parseEncryptionHeader } = createHeaderParsers({
  factorsName: 'pa_auth_code_type',
  codeName: 'pa_auth_code',
  mayRepeatNames: false,
  isVersion: (text) => text === VERSION,
  parseBytes,
  // The length is not compared with the factors here: a code of the wrong length fails verification, and counts as a failure.
  isCode: (text) => CODE_LENGTHS.includes(parseBytes(text)?.length ?? 0),
  // The digest covers the text of the timestamp. Without leading zeros a number has only one text.
  timestamp: /^[1-9]\d{8,14}$/,
})

/** Decodes Base64. A code covers the nonce as text, so only the one canonical text of the bytes is accepted (v4 §7.1). */
function parseBytes(text: string, length?: number): Uint8Array | undefined {
  const bytes = parseBase64(text, length)
  return bytes && toBase64(bytes) === text ? bytes : undefined
}

const CODE_LENGTHS = [32, 64, 96]

/** Whether the header's digest matches its nonce and timestamp. `tokenSecret`: 32 bytes, or 16 if it was made under v3. */
export const verifyTokenDigest = (tokenSecret: Uint8Array, header: TokenHeader): boolean =>
  equalConstantTime(computeTokenDigest(tokenSecret, header), header.digest)

/** The digest of a token header, 32 bytes. The timestamp enters in decimal without leading zeros, as the header has it. */
export const computeTokenDigest = (
  tokenSecret: Uint8Array,
  { version, nonce, timestamp }: Omit<TokenHeader, 'tokenId' | 'digest'>,
): Uint8Array => importTokenSecret(tokenSecret).compute(concat(nonce, utf8(`&${timestamp}&${version}`)))

/** Always true, because every version of v4 has the short time window for tokens (v4 §9.9). */
export const hasShortTokenWindow = (_version: string): boolean => true

const importTokenSecret = createKmac('PA4DIGEST')
