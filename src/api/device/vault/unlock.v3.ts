// vault/unlock: answers the key of the phone's vault. Spec: v3 §12.
import { Type } from '@sinclair/typebox'
import { unlockEndpointV3 } from '../../../channel/flow/unlock.v3.ts'
import { activationKeysOf } from '../../../channel/secrets.ts'
import { toBase64 } from '../../../lib/base64.ts'
import { PawlError } from '../../../lib/errors.ts'
import { FACTOR_COMBINATIONS } from '../../../protocol/protocol.ts'
import { findVaultFactors } from '../../../storage/application/applications.ts'
import type { DeviceParts } from '../parts.ts'
import { showReason, VaultReason } from './reason.ts'

export const vaultUnlockV3 = unlockEndpointV3({
  path: 'vault/unlock',
  summary: 'Key of the secure vault of the phone',
  errors: [],
  authenticate: {
    resourceId: '/pa/vault/unlock',
    // Possession and knowledge always open the vault. Other combinations open it only if the setting of the application names them.
    async factors({ factors, applicationKey }, { db }: DeviceParts) {
      if (factors === 'POSSESSION_KNOWLEDGE') return [factors]
      const allowed = await findVaultFactors(db, applicationKey)
      return FACTOR_COMBINATIONS.filter((combination) => allowed.includes(combination))
    },
    auditAs: ({ reason }) => ({ reason: showReason(reason) }),
  },
  encrypt: { sharedInfo1: '/pa/vault/unlock' },
  request: Type.Object({ reason: VaultReason }),
  response: Type.Object({ encryptedVaultEncryptionKey: Type.String() }),
  async handle({ request, activation }, parts) {
    const keys = activationKeysOf(parts.recordKeys, parts.protocols.v3, activation)
    if (keys === undefined) throw new PawlError('INTERNAL', { detail: 'an authenticated activation without keys' })
    parts.events.vaultUnlocked({ activationId: activation.activationId, reason: showReason(request.reason) })
    return { encryptedVaultEncryptionKey: toBase64(parts.protocols.v3.encryptVaultKey(keys)) }
  },
})
