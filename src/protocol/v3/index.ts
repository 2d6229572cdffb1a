// Lists generation 3 of the protocol as an implementation of Protocol. Nothing is computed here.
import { composeSignedData } from '../wire/request-data.ts'
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

/** Versions 3.0 to 3.3, with the members that only v3 has. */
export interface ProtocolV3 extends Protocol<ActivationKeys> {
  /** KEY_MASTER_SECRET from the key exchange, 16 bytes (v3 §3.2). Undefined when the device's point is not valid. */
  readonly agreeMasterSecret: typeof agreeMasterSecret
  /** Eight digits that both sides show (v3 §4.3). */
  readonly activationFingerprint: typeof activationFingerprint
  /** The encrypted status blob, 32 bytes (v3 §9.3, §9.4). */
  readonly encryptStatusBlob: typeof encryptStatusBlob
  /** AES-CBC(KEY_TRANSPORT, zero IV, KEY_ENCRYPTION_VAULT), 32 bytes (v3 §12). */
  readonly encryptVaultKey: typeof encryptVaultKey
}

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
  signedData: composeSignedData,
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
  agreeMasterSecret,
  activationFingerprint,
  encryptStatusBlob,
  encryptVaultKey,
}

export type { ActivationKeys } from './key-schedule.ts'
