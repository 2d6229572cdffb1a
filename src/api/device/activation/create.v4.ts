// activation/create: binds the device to the activation that waits for its code, or to a user whom a provider recognises. The request has two
// encrypted layers. Spec: v4 §8.4, §8.5.
import { type Static, Type } from '@sinclair/typebox'
import { nestedEndpoint } from '../../../channel/flow/nested.ts'
import { type KeyAgreement, refuseActivation } from '../../../domain/activation/activation.ts'
import { listAllowedAlgorithms } from '../../../domain/application/master-keys.ts'
import { NotBlank } from '../../../http/types.ts'
import { toBase64 } from '../../../lib/base64.ts'
import { requestRefused } from '../../../lib/errors.ts'
import { exportSigningKeys, joinPublicKeys } from '../../../protocol/v4/key-pairs.ts'
import type { ExchangedKeys, ProtocolV4, SharedSecretRequest } from '../../../protocol/v4/index.ts'
import type { VersionRow } from '../../../storage/application/version.ts'
import type { DeviceParts } from '../parts.ts'
import {
  activate,
  codeHashOf,
  DeviceMembers,
  requireActivatable,
  LAYER_1_BYTES_MAX,
  Layer1Request,
  Layer1Response,
} from './create.ts'

/** The members in which a device sends its keys, at an activation and at an upgrade. */
export const KeyMembers = {
  sharedSecretRequest: Type.Object({
    algorithm: NotBlank(255),
    encapsulationKeys: Type.Array(NotBlank(LAYER_1_BYTES_MAX), { minItems: 1 }),
  }),
  devicePublicKeys: Type.Object({ ecdsa: NotBlank(LAYER_1_BYTES_MAX), mldsa: Type.Optional(Type.Unknown()) }),
}
export type DevicePublicKeys = Static<typeof KeyMembers.devicePublicKeys>

export const activationCreateV4 = nestedEndpoint({
  path: 'activation/create',
  summary: 'Exchanges keys for an activation code',
  errors: ['ACTIVATION_FAILED'],
  bytesMax: LAYER_1_BYTES_MAX,
  codeHashOf,
  encrypt: { sharedInfo1: '/pa/generic/application' },
  inner: {
    sharedInfo1: '/pa/activation',
    request: Type.Object({ ...KeyMembers, ...DeviceMembers }),
    pick: (layer1) => layer1.activationData,
    isAnyKeyAccepted: true,
  },
  request: Layer1Request,
  response: Layer1Response,
  async handle({ request, inner, sealInner, applicationVersion, version, ...exchange }, parts: DeviceParts) {
    requireActivatable(parts, request, applicationVersion, version)
    const { applicationId } = applicationVersion
    const agreement = agreeWith(parts, applicationVersion, version, inner)
    return activate(
      parts,
      agreement,
      applicationId,
      { layer1: request, layer2: inner, ...exchange },
      ({ activationId, ctrData, answer }) => sealInner({ ...answer, activationId, ctrData: toBase64(ctrData) }),
    )
  },
})

/**
 * The key agreement for a request. Throws ACTIVATION_FAILED for a malformed request, and for an algorithm that the application does not admit;
 * REQUEST_INVALID when the second device key of a hybrid algorithm is missing.
 */
function agreeWith(
  parts: DeviceParts,
  applicationVersion: VersionRow,
  version: string,
  nested: { readonly sharedSecretRequest: unknown; readonly devicePublicKeys: DevicePublicKeys },
): KeyAgreement<ExchangedKeys['answer']> {
  const { v4 } = parts.protocols
  const request = v4.parseSharedSecretRequest(nested.sharedSecretRequest)
  if (request === undefined) throw refuseActivation(parts, 'the shared secret request is not well-formed')
  if (!listAllowedAlgorithms(applicationVersion).includes(request.algorithm))
    throw refuseActivation(parts, 'the application does not admit the algorithm')
  requireHybridKey(request, nested.devicePublicKeys)
  const { activationVersion, ctrDataLength } = v4
  const salt = parts.platform.randomBytes(32)
  return {
    activationVersion,
    version,
    ctrDataLength,
    isConfirmedByPhone: true,
    agree: ({ activationId }) => agree(v4, request, nested.devicePublicKeys, activationId, salt),
  }
}

/** Throws REQUEST_INVALID when a hybrid algorithm lacks the second device key. For other algorithms that member is ignored. */
export function requireHybridKey({ encapsulationKeys }: SharedSecretRequest, { mldsa }: DevicePublicKeys): void {
  const isMissing = typeof mldsa !== 'string' || mldsa.trim() === ''
  if (encapsulationKeys.length > 1 && isMissing) throw requestRefused('devicePublicKeys.mldsa', 'must not be blank')
}

async function agree(v4: ProtocolV4, request: SharedSecretRequest, json: unknown, activationId: string, salt: Uint8Array) {
  const { algorithm } = request
  const deviceKeys = v4.parsePublicKeys(algorithm, json)
  if (deviceKeys === undefined) return 'UNUSABLE'
  const exchanged = await v4.exchangeKeys(request, deviceKeys, activationId, salt)
  if (exchanged === undefined) return 'UNUSABLE'
  const { activationSecret, activationFingerprint, serverKeys, answer } = exchanged
  const publicKey = joinPublicKeys(serverKeys.publicKeys)
  const privateKey = exportSigningKeys(serverKeys)
  const devicePublicKey = joinPublicKeys(deviceKeys)
  return { algorithm, activationSecret, activationFingerprint, devicePublicKey, serverKeys: { publicKey, privateKey }, answer }
}
