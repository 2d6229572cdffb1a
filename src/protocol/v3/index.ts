// Generation 3 of the protocol as the rest of pawl sees it. A list; nothing is computed here.
import type { Protocol } from '../protocol.ts'
import { composeSignedData, verifyAuthenticationCode } from './authentication-code.ts'
import { canonicalQueryReadings } from './canonical-query.ts'
import { parseEnvelope } from './envelope.ts'
import { activationFingerprint } from './fingerprint.ts'
import { parseAuthorizationHeader, parseEncryptionHeader, parseTokenHeader } from './header.ts'
import { agreeMasterSecret, deriveActivationKeys, encryptVaultKey } from './key-schedule.ts'
import { encryptStatusBlob } from './status-blob.ts'
import { createPersonalizedPayload, verifyOfflineOtp } from './offline.ts'
import { createTemporaryKeyAnswer, parseTemporaryKeyRequest } from './temporary-key.ts'
import { hasShortTokenWindow, verifyTokenDigest } from './token-digest.ts'

/** Versions 3.0 to 3.3. */
export const v3: Protocol = {
  path: 'v3',
  activationVersion: 3,
  parseAuthorizationHeader,
  parseTokenHeader,
  parseEncryptionHeader,
  parseEnvelope,
  canonicalQueryReadings,
  signedData: composeSignedData,
  verifyAuthenticationCode,
  verifyTokenDigest,
  hasShortTokenWindow,
  agreeMasterSecret,
  deriveActivationKeys,
  activationFingerprint,
  encryptStatusBlob,
  parseTemporaryKeyRequest,
  createTemporaryKeyAnswer,
  encryptVaultKey,
  createPersonalizedPayload,
  verifyOfflineOtp,
}
