// Lists generation 3 of the protocol as an implementation of Protocol. Nothing is computed here.
import type { Protocol } from '../protocol.ts'
import { coveredBodies, verifyAuthenticationCode } from './authentication-code.ts'
import { importAnswerKeys, parseEnvelope } from './envelope.ts'
import { activationFingerprint } from './fingerprint.ts'
import {
  hasShortTokenWindow,
  parseAuthorizationHeader,
  parseEncryptionHeader,
  parseTokenHeader,
  verifyTokenDigest,
} from './header.ts'
import {
  activationKeyBytes,
  advanceCounter,
  type ActivationKeys,
  agreeMasterSecret,
  createDecoyKeys,
  deriveActivationKeys,
  encryptVaultKey,
  importEnvelopeKey,
  importSigningKeys,
} from './key-schedule.ts'
import { encryptStatusBlob } from './status-blob.ts'
import { createPersonalizedPayload, verifyOfflineOtp } from './offline.ts'
import { parseTemporaryKeyRequest } from './temporary-key.ts'

/** The members that only v3 has. */
const own = { agreeMasterSecret, activationFingerprint, encryptStatusBlob, encryptVaultKey }

/** Versions 3.0 to 3.3. */
export type ProtocolV3 = Protocol<ActivationKeys> & typeof own

export const v3: ProtocolV3 = {
  path: 'v3',
  activationVersion: 3,
  ctrDataLength: 16,
  tokenSecretLength: 16,
  parseAuthorizationHeader,
  parseTokenHeader,
  parseEncryptionHeader,
  parseEnvelope,
  importAnswerKeys,
  importEnvelopeKey,
  importSigningKeys,
  coveredBodies,
  verifyAuthenticationCode,
  advanceCounter,
  verifyTokenDigest,
  hasShortTokenWindow,
  deriveActivationKeys,
  activationKeyBytes,
  createDecoyKeys,
  parseTemporaryKeyRequest,
  createPersonalizedPayload,
  verifyOfflineOtp,
  ...own,
}

export type { ActivationKeys } from './key-schedule.ts'
