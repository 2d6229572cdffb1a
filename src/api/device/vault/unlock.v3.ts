// vault/unlock: the key of the phone's vault. Encrypted, then signed; opened before the code is checked. Spec: v3 §12.
import { Type } from '@sinclair/typebox'
import { activationKeysOf } from '../../../channel/secrets.ts'
import { toBase64 } from '../../../lib/base64.ts'
import { PawlError } from '../../../lib/errors.ts'
import { FACTOR_COMBINATIONS } from '../../../protocol/protocol.ts'
import { findVaultFactors } from '../../../storage/applications.ts'
import { deviceEndpoint } from '../parts.ts'
import { showReason, VaultReason } from './reason.ts'

export const vaultUnlockV3 = deviceEndpoint({
  path: 'vault/unlock',
  summary: 'Key of the secure vault of the phone',
  errors: [],
  order: ['envelope', 'factors', 'open', 'validate', 'authenticate'],
  authenticate: {
    resourceId: '/pa/vault/unlock',
    // Possession and knowledge always; others only where the application says so.
    async factors({ db }, { factors, applicationKey }) {
      if (factors === 'POSSESSION_KNOWLEDGE') return [factors]
      const allowed = await findVaultFactors(db, applicationKey)
      return FACTOR_COMBINATIONS.filter((combination) => allowed.includes(combination))
    },
    covers: 'body',
    auditAs: ({ reason }) => ({ reason: showReason(reason) }),
  },
  encrypt: { scope: 'ACTIVATION_SCOPE', sharedInfo1: '/pa/vault/unlock', leavesStateToCode: true },
  refusals: {
    headerMissing: 'AUTHENTICATION_HEADER_MISSING',
    factors: 'VAULT_FAILED',
    envelope: 'AUTHENTICATION_REQUEST_INVALID',
    open: 'VAULT_FAILED',
    plaintext: 'AUTHENTICATION_REQUEST_INVALID',
    request: 'VAULT_FAILED',
  },
  request: Type.Object({ reason: VaultReason }),
  response: Type.Object({ encryptedVaultEncryptionKey: Type.String() }),
  async handle({ request, activation, parts }) {
    const keys = activationKeysOf(parts.recordKeys, parts.protocols.v3, activation)
    if (keys === undefined) throw new PawlError('INTERNAL', { detail: 'an authenticated activation without keys' })
    parts.events.vaultUnlocked({ activationId: activation.activationId, reason: showReason(request.reason) })
    return { encryptedVaultEncryptionKey: toBase64(parts.protocols.v3.encryptVaultKey(keys)) }
  },
})
