// activation/status: answers the state of an activation in an envelope that only its phone can open. Spec: v4 §9.4.
import { Type } from '@sinclair/typebox'
import { openedEndpoint } from '../../../channel/flow/opened.ts'
import { codeKeysOf } from '../../../channel/secrets.ts'
import { listAllowedAlgorithms } from '../../../domain/application/master-keys.ts'
import { isExpired } from '../../../domain/activation/registration.ts'
import { AnyMembers } from '../../../http/types.ts'
import { toBase64 } from '../../../lib/base64.ts'
import { PawlError } from '../../../lib/errors.ts'
import type { ActivationRow } from '../../../storage/activation/find.ts'
import type { ActivationState } from '../../../storage/database/schema.ts'
import type { DeviceParts } from '../parts.ts'

export const activationStatusV4 = openedEndpoint({
  path: 'activation/status',
  summary: 'State of an activation',
  description:
    'With `X-Svc-*` headers `activationStatus` is the name of the state, otherwise the status blob that the SDKs read.',
  errors: [],
  encrypt: { sharedInfo1: '/pa/generic/activation', opensFor: 'UPGRADING' },
  response: Type.Object({
    activationStatus: Type.String(),
    customObject: Type.Optional(AnyMembers),
    timestampBlockExpire: Type.Optional(
      Type.Union([Type.Integer(), Type.Null()], {
        description:
          'end of a temporary block in milliseconds since 1970-01-01 UTC; null without one, then with `X-Svc-*` headers only',
      }),
    ),
  }),
  async handle({ activation, version, customObject, dialect }, parts: DeviceParts) {
    const allowed = listAllowedAlgorithms(version)
    const state = isExpired(activation, parts.platform.now()) ? 'REMOVED' : activation.state
    const isSvc = dialect === 'svc'
    const timestampBlockExpire = activation.blockExpiresAt?.getTime() ?? null
    return {
      activationStatus: isSvc ? state : toBase64(composeBlob(parts, activation, state, allowed)),
      ...(customObject !== null && { customObject }),
      ...((isSvc || timestampBlockExpire !== null) && { timestampBlockExpire }),
    }
  },
})

function composeBlob(
  parts: DeviceParts,
  activation: ActivationRow,
  state: ActivationState,
  allowed: readonly string[],
): Uint8Array {
  const { recordKeys, platform, settings } = parts
  const { v4 } = parts.protocols
  const known = codeKeysOf(recordKeys, v4, activation)
  // The keys have opened the envelope, so only the counter can be altered.
  if (known === undefined) throw new PawlError('ENCRYPTION_FAILED', { detail: 'the counter of the activation does not open' })
  const isUpgradePending = activation.isUpgradePending === true
  const { counter, failedAttempts, maxFailedAttempts, algorithm, isConfirmationPending, isBiometryEnabled } = activation
  const status = {
    state,
    currentVersion: isUpgradePending ? parts.protocols.v3.activationVersion : v4.activationVersion,
    upgradeVersion: v4.activationVersion,
    isConfirmationPending,
    isUpgradePending,
    isAlgorithmUnsupported: algorithm === null || !allowed.includes(algorithm),
    isBiometryEnabled: isBiometryEnabled === true,
    counter,
    ctrData: known.ctrData,
    failedAttempts,
    maxFailedAttempts,
    lookAhead: settings.counterLookAhead,
  }
  return v4.composeStatusBlob(known.keys, status, platform.randomBytes(4))
}
