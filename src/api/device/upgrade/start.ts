// upgrade/start: an activation of protocol 3 agrees on keys of protocol 4.0. It keeps both sets of keys until upgrade/confirm. Spec: v4 §10.2.
import { Type } from '@sinclair/typebox'
import { signedOpenedByNextEndpoint } from '../../../channel/flow/signed-then-opened-by-next.ts'
import { findAllowedAlgorithms } from '../../../domain/application/master-keys.ts'
import { places } from '../../../domain/secrets/secrets.ts'
import { OptionalOrNull } from '../../../http/types.ts'
import { toBase64 } from '../../../lib/base64.ts'
import { PawlError } from '../../../lib/errors.ts'
import type { PublicKeys, SharedSecretRequest } from '../../../protocol/v4/index.ts'
import { exportSigningKeys, joinPublicKeys } from '../../../protocol/v4/key-pairs.ts'
import { storeUpgrade } from '../../../storage/request/upgrade.ts'
import { type DevicePublicKeys, KeyMembers, requireHybridKey } from '../activation/create.v4.ts'
import { SharedSecretResponse } from '../factors/replace-key.ts'
import type { DeviceParts } from '../parts.ts'

export const upgradeStart = signedOpenedByNextEndpoint({
  path: 'upgrade/start',
  summary: 'Agrees on keys of protocol 4.0 for an activation of protocol 3',
  description:
    'The authorization header is one of 3.x, the encryption header one of 4.0. It may be repeated until the upgrade is confirmed.',
  errors: ['UPGRADE_FAILED'],
  authenticate: { resourceId: '/pa/upgrade/start', factors: ['POSSESSION_KNOWLEDGE'] },
  encrypt: { sharedInfo1: '/pa/upgrade/start' },
  refusal: 'UPGRADE_FAILED',
  request: Type.Object({ ...KeyMembers, enableBiometry: OptionalOrNull(Type.Boolean()) }),
  response: Type.Object({
    sharedSecretResponse: SharedSecretResponse,
    serverPublicKeys: Type.Object({ ecdsa: Type.String(), mldsa: Type.Optional(Type.String()) }),
    ctrData: Type.String(),
  }),
  async handle({ request, activation }, parts: DeviceParts) {
    const { activationId, applicationId, counter } = activation
    const { algorithm, sharedSecretRequest, deviceKeys } = await readKeys(parts, applicationId, request)
    const { platform, recordKeys, protocols } = parts
    const exchanged = await protocols.v4.exchangeKeys(sharedSecretRequest, deviceKeys, activationId, platform.randomBytes(32))
    if (exchanged === undefined) throw refuse('the keys of the request are not valid')
    const ctrData = platform.randomBytes(protocols.v4.ctrDataLength)
    const { activationSecret, activationFingerprint, serverKeys, answer } = exchanged
    const isStored = await storeUpgrade(parts.db, activationId, counter, {
      algorithm,
      devicePublicKey: joinPublicKeys(deviceKeys),
      serverPublicKey: joinPublicKeys(serverKeys.publicKeys),
      serverPrivateKey: recordKeys.seal(places.serverPrivateKey(activation), exportSigningKeys(serverKeys)),
      masterSecret: recordKeys.seal(places.masterSecret(activation), activationSecret),
      ctrData: recordKeys.seal(places.ctrData(activationId), ctrData),
      activationFingerprint,
      isBiometryEnabled: request.enableBiometry === true,
    })
    if (!isStored) throw refuse('no longer an activation of protocol 3, or a later start was faster')
    const { salt, encapsulatedKeys } = answer.sharedSecretResponse
    return {
      sharedSecretResponse: { salt, encapsulatedKeys: [...encapsulatedKeys] },
      serverPublicKeys: answer.serverPublicKeys,
      ctrData: toBase64(ctrData),
    }
  },
})

/**
 * Reads the keys of a request. Throws UPGRADE_FAILED for invalid ones. The activation is not removed, because its keys of protocol 3 are still valid
 * (v4 §10.2). Throws REQUEST_INVALID when the second device key of a hybrid algorithm is missing.
 */
async function readKeys(
  { db, protocols: { v4 } }: DeviceParts,
  applicationId: string,
  json: { readonly sharedSecretRequest: unknown; readonly devicePublicKeys: DevicePublicKeys },
): Promise<{
  algorithm: SharedSecretRequest['algorithm']
  sharedSecretRequest: SharedSecretRequest
  deviceKeys: PublicKeys
}> {
  const sharedSecretRequest = v4.parseSharedSecretRequest(json.sharedSecretRequest)
  if (sharedSecretRequest === undefined) throw refuse('the shared secret request is not well-formed')
  const { algorithm } = sharedSecretRequest
  requireHybridKey(sharedSecretRequest, json.devicePublicKeys)
  const allowed = await findAllowedAlgorithms(db, applicationId)
  if (!allowed.includes(algorithm)) throw refuse('the application does not admit the algorithm')
  const deviceKeys = v4.parsePublicKeys(algorithm, json.devicePublicKeys)
  if (deviceKeys === undefined) throw refuse('the device keys are not valid')
  return { algorithm, sharedSecretRequest, deviceKeys }
}

const refuse = (detail: string): PawlError => new PawlError('UPGRADE_FAILED', { detail })
