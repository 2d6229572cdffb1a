// Lists generation 4 of the protocol as an implementation of Protocol. Nothing is computed here.
import { composeSignedData } from '../wire/request-data.ts'
import type { Protocol } from '../protocol.ts'
import { coveredBodies, verifyAuthenticationCode } from './authentication-code.ts'
import { importAnswerKeys, parseEnvelope } from './envelope.ts'
import { addBiometryKey, removeBiometryKeys, replaceKnowledgeKey } from './factor-keys.ts'
import {
  hasShortTokenWindow,
  parseAuthorizationHeader,
  parseEncryptionHeader,
  parseTokenHeader,
  verifyTokenDigest,
} from './header.ts'
import { exchangeKeys } from './key-exchange.ts'
import { importSigningKeys, parsePublicKeys } from './key-pairs.ts'
import {
  type ActivationKeys,
  advanceCounter,
  createDecoyKeys,
  deriveActivationKeys,
  deriveVaultKey,
  importEnvelopeKey,
} from './key-schedule.ts'
import { createPersonalizedPayload, verifyOfflineOtp } from './offline.ts'
import { encapsulateSharedSecret, parseSharedSecretRequest } from './shared-secret.ts'
import { composeStatusBlob } from './status-blob.ts'
import { parseTemporaryKeyRequest } from './temporary-key.ts'

/** Version 4.0, with the members that only v4 has. */
export interface ProtocolV4 extends Protocol<ActivationKeys> {
  /** Parses the SharedSecretRequest of activation/create, upgrade/start, password/change or biometry/add (v4 §2.2). */
  readonly parseSharedSecretRequest: typeof parseSharedSecretRequest
  /** Makes a new factor key and its answer (v4 §9.12, §9.13). */
  readonly encapsulateSharedSecret: typeof encapsulateSharedSecret
  /** Parses the device's public keys (v4 §8.4). */
  readonly parsePublicKeys: typeof parsePublicKeys
  /** Makes server keys, secret of the activation and fingerprint (v4 §8.5, §10.2). */
  readonly exchangeKeys: typeof exchangeKeys
  /** Each returns the stored secret with changed factor keys (v4 §9.12, §9.13). */
  readonly replaceKnowledgeKey: typeof replaceKnowledgeKey
  readonly addBiometryKey: typeof addBiometryKey
  readonly removeBiometryKeys: typeof removeBiometryKeys
  /** Status blob and its MAC, 80 bytes (v4 §9.4). */
  readonly composeStatusBlob: typeof composeStatusBlob
  /** A key of the vault, 32 bytes (v4 §9.10). */
  readonly deriveVaultKey: typeof deriveVaultKey
}

export const v4: ProtocolV4 = {
  path: 'v4',
  activationVersion: 4,
  ctrDataLength: 32,
  tokenSecretLength: 32,
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
  // These keys are states of KMAC, not bytes.
  activationKeyBytes: undefined,
  createDecoyKeys,
  parseTemporaryKeyRequest,
  createPersonalizedPayload,
  verifyOfflineOtp,
  parseSharedSecretRequest,
  encapsulateSharedSecret,
  parsePublicKeys,
  exchangeKeys,
  replaceKnowledgeKey,
  addBiometryKey,
  removeBiometryKeys,
  composeStatusBlob,
  deriveVaultKey,
}

export type { ExchangedKeys } from './key-exchange.ts'
export type { PublicKeys } from './key-pairs.ts'
export type { ActivationKeys, VaultKeyIdentifier } from './key-schedule.ts'
export type { SharedSecretRequest } from './shared-secret.ts'
