// vault/unlock: answers one of the keys of the phone's vault. Spec: v4 §9.10.
import { Type } from '@sinclair/typebox'
import { unlockEndpointV4 } from '../../../channel/flow/unlock.v4.ts'
import { activationKeysOf } from '../../../channel/secrets.ts'
import { OptionalOrNull } from '../../../http/types.ts'
import { toBase64 } from '../../../lib/base64.ts'
import { PawlError, requestRefused } from '../../../lib/errors.ts'
import type { Factors } from '../../../protocol/protocol.ts'
import type { VaultKeyIdentifier } from '../../../protocol/v4/index.ts'
import { findVaultFactors } from '../../../storage/application/applications.ts'
import type { DeviceParts } from '../parts.ts'
import { showReason, VaultReason } from './reason.ts'

export const vaultUnlockV4 = unlockEndpointV4({
  path: 'vault/unlock',
  summary: 'A key of the secure vault of the phone',
  description: `KEK_DEVICE_PRIVATE opens for biometry where the application says so, KDK_APP_VAULT_2FA always, KDK_APP_VAULT_KNOWLEDGE
never.`,
  errors: ['REQUEST_INVALID'],
  authenticate: {
    resourceId: '/pa/vault/unlock',
    async factors({ keyIdentifier }, { applicationKey }, { db }: DeviceParts) {
      const identifier = parseIdentifier(keyIdentifier)
      if (identifier === 'KDK_APP_VAULT_KNOWLEDGE') return ['POSSESSION_KNOWLEDGE']
      if (identifier === 'KDK_APP_VAULT_2FA') return TWO_FACTORS
      const isBiometryAllowed = (await findVaultFactors(db, applicationKey)).includes('POSSESSION_BIOMETRY')
      return isBiometryAllowed ? TWO_FACTORS : ['POSSESSION_KNOWLEDGE']
    },
    auditAs: ({ keyIdentifier, reason }) => ({ keyIdentifier, reason: showReason(reason) }),
  },
  encrypt: { sharedInfo1: '/pa/vault/unlock' },
  request: Type.Object({ keyIdentifier: OptionalOrNull(Type.String()), reason: VaultReason }),
  response: Type.Object({ vaultEncryptionKey: Type.String() }),
  async handle({ request, activation }, parts) {
    const { v4 } = parts.protocols
    const keys = activationKeysOf(parts.recordKeys, v4, activation)
    if (keys === undefined) throw new PawlError('INTERNAL', { detail: 'an authenticated activation without keys' })
    parts.events.vaultUnlocked({ activationId: activation.activationId, reason: showReason(request.reason) })
    return { vaultEncryptionKey: toBase64(v4.deriveVaultKey(keys, parseIdentifier(request.keyIdentifier))) }
  },
})

/** Parses a key identifier. Throws REQUEST_INVALID for a missing or blank one, and VAULT_FAILED for an unknown one. */
function parseIdentifier(text: string | null | undefined): VaultKeyIdentifier {
  if (text == null || text.trim() === '') throw requestRefused('keyIdentifier', 'must not be blank')
  const identifier = IDENTIFIERS.find((known) => known === text)
  if (identifier === undefined) throw new PawlError('VAULT_FAILED', { detail: 'unknown key identifier' })
  return identifier
}

const TWO_FACTORS: readonly Factors[] = ['POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY']
const IDENTIFIERS: readonly VaultKeyIdentifier[] = ['KEK_DEVICE_PRIVATE', 'KDK_APP_VAULT_KNOWLEDGE', 'KDK_APP_VAULT_2FA']
