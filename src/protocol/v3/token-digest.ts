// Digests of token headers (v3 §11.2).
import { hmac } from '../../crypto/hash.ts'
import { concat, equalConstantTime, utf8 } from '../../lib/bytes.ts'
import type { TokenHeader } from '../protocol.ts'
import { capabilitiesOf } from './versions.ts'

/** Whether the header's digest is the one of its nonce and timestamp. `tokenSecret`: 16 bytes. */
export const verifyTokenDigest = (tokenSecret: Uint8Array, header: TokenHeader): boolean =>
  equalConstantTime(computeTokenDigest(tokenSecret, header), header.digest)

/** 32 bytes. The timestamp enters in decimal without leading zeros. */
export function computeTokenDigest(tokenSecret: Uint8Array, header: Omit<TokenHeader, 'tokenId' | 'digest'>): Uint8Array {
  const { version, nonce, timestamp } = header
  const binding = capabilitiesOf(version)?.versionBinding ? `&${version}` : ''
  return hmac(tokenSecret, concat(nonce, utf8(`&${timestamp}${binding}`)))
}

/** The version has the short time window for tokens (v3 §14). */
export const hasShortTokenWindow = (version: string): boolean => capabilitiesOf(version)?.timestamp ?? false
