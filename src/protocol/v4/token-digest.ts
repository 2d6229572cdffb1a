// Digests of token headers (v4 §9.9).
import { createKmac } from '../../crypto/kmac.ts'
import { concat, equalConstantTime, utf8 } from '../../lib/bytes.ts'
import type { TokenHeader } from '../protocol.ts'

/** Whether the header's digest is the one of its nonce and timestamp. `tokenSecret`: 32 bytes, 16 when it was made under v3. */
export const verifyTokenDigest = (tokenSecret: Uint8Array, header: TokenHeader): boolean =>
  equalConstantTime(computeTokenDigest(tokenSecret, header), header.digest)

/** 32 bytes. The timestamp enters in decimal without leading zeros, as the header has it. */
export const computeTokenDigest = (
  tokenSecret: Uint8Array,
  { version, nonce, timestamp }: Omit<TokenHeader, 'tokenId' | 'digest'>,
): Uint8Array => importTokenSecret(tokenSecret).compute(concat(nonce, utf8(`&${timestamp}&${version}`)))

/** Every version has the short time window for tokens (v4 §9.9). */
export const hasShortTokenWindow = (_version: string): boolean => true

const importTokenSecret = createKmac('PA4DIGEST')
