// Lists generation 4 of the protocol as an implementation of Protocol. Nothing is computed here.
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

/** The members that only v4 has. */
const own = {
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

/** Version 4.0. */
export type ProtocolV4 = Protocol<ActivationKeys> & typeof own

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
  ...own,
}

export type { ExchangedKeys } from './key-exchange.ts'
export type { PublicKeys } from './key-pairs.ts'
export type { ActivationKeys, VaultKeyIdentifier } from './key-schedule.ts'
export type { SharedSecretRequest } from './shared-secret.ts'
