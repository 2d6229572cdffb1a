// activation/create: binds the device to the activation that waits for its code, or to a user whom a provider recognises. The request has two
// encrypted layers. Spec: v3 §8.3 to §8.6.
import { Type } from '@sinclair/typebox'
import { nestedEndpoint } from '../../../channel/flow/nested.ts'
import { type KeyAgreement, refuseActivation } from '../../../domain/activation/activation.ts'
import { listAllowedAlgorithms } from '../../../domain/application/master-keys.ts'
import { NotBlank } from '../../../http/types.ts'
import { parseBase64, toBase64 } from '../../../lib/base64.ts'
import type { ProtocolV3 } from '../../../protocol/v3/index.ts'
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

export const activationCreateV3 = nestedEndpoint({
  path: 'activation/create',
  summary: 'Exchanges keys for an activation code',
  errors: ['ACTIVATION_FAILED'],
  bytesMax: LAYER_1_BYTES_MAX,
  codeHashOf,
  encrypt: { sharedInfo1: '/pa/generic/application' },
  inner: {
    sharedInfo1: '/pa/activation',
    request: Type.Object({ devicePublicKey: NotBlank(128), ...DeviceMembers }),
    pick: (layer1) => layer1.activationData,
    isAnyKeyAccepted: false,
  },
  request: Layer1Request,
  response: Layer1Response,
  async handle({ request, inner, sealInner, applicationVersion, version, ...exchange }, parts: DeviceParts) {
    requireActivatable(parts, request, applicationVersion, version)
    const { applicationId } = applicationVersion
    if (!listAllowedAlgorithms(applicationVersion).includes('EC_P256'))
      throw refuseActivation(parts, 'the application does not admit protocol 3')
    // A text that is not Base64 is refused in the same way as bytes that are no point.
    const agreement = agreeWith(parts.protocols.v3, version, parseBase64(inner.devicePublicKey) ?? new Uint8Array(0))
    return activate(
      parts,
      agreement,
      applicationId,
      { layer1: request, layer2: inner, ...exchange },
      ({ activationId, ctrData, answer }) => sealInner({ activationId, ...answer, ctrData: toBase64(ctrData) }),
    )
  },
})

const agreeWith = (v3: ProtocolV3, version: string, devicePublicKey: Uint8Array): KeyAgreement<{ serverPublicKey: string }> => ({
  activationVersion: v3.activationVersion,
  version,
  ctrDataLength: v3.ctrDataLength,
  isConfirmedByPhone: false,
  async agree({ activationId, serverPublicKey, openServerPrivateKey }) {
    const activationSecret = v3.agreeMasterSecret(openServerPrivateKey(), devicePublicKey)
    if (activationSecret === undefined) return 'INVALID_DEVICE_KEY'
    const activationFingerprint = v3.activationFingerprint(devicePublicKey, activationId, serverPublicKey)
    const answer = { serverPublicKey: toBase64(serverPublicKey) }
    return { algorithm: null, activationSecret, activationFingerprint, devicePublicKey, serverKeys: null, answer }
  },
})
