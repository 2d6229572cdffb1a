// activation/create: binds the device to the activation that waits for its code. Two encrypted layers. Spec: v3 §8.3, §8.4.
import { Type } from '@sinclair/typebox'
import { exchangeKeys } from '../../../domain/activation.ts'
import { Absent, NotBlank, Text } from '../../../http/types.ts'
import { parseBase64, toBase64 } from '../../../lib/base64.ts'
import { PawlError } from '../../../lib/errors.ts'
import { findRequestParties } from '../../../storage/activations.ts'
import { deviceEndpoint } from '../parts.ts'

const Layer1Request = Type.Object({
  // RECOVERY and anything else is no type of this server.
  type: Type.Union([Type.Literal('CODE'), Type.Literal('DIRECT'), Type.Literal('CUSTOM')]),
  identityAttributes: Type.Record(Type.String(), Type.String(), { minProperties: 1 }),
  customAttributes: Absent(Type.Record(Type.String(), Type.Unknown())),
  activationData: Type.Object({}),
})

const Layer2Request = Type.Object({
  devicePublicKey: NotBlank(128),
  // No OTP can be set up for an activation yet, so whatever comes is ignored: it must not activate anything (v3 §8.5).
  activationOtp: Absent(Type.String()),
  activationName: Absent(Text(255)),
  extras: Absent(Type.String()),
  platform: Absent(Text(255)),
  deviceInfo: Absent(Text(255)),
  externalId: Absent(Text(255)),
})

export const activationCreate = deviceEndpoint({
  path: 'activation/create',
  order: ['envelope', 'open', 'validate', 'open-nested'],
  encrypt: { scope: 'APPLICATION_SCOPE', sharedInfo1: '/pa/generic/application' },
  nested: { sharedInfo1: '/pa/activation', request: Layer2Request, pick: (layer1) => layer1.activationData },
  request: Layer1Request,
  response: Type.Object({
    activationData: Type.Record(Type.String(), Type.Unknown()),
    customAttributes: Type.Record(Type.String(), Type.Unknown()),
  }),
  async handle({ request, nested, sealNested, applicationKey, parts }) {
    if (request.type !== 'CODE')
      throw new PawlError('ACTIVATION_FAILED', { detail: `no provider for activations of type ${request.type}` })
    const { code } = request.identityAttributes
    if (code === undefined) {
      throw new PawlError('REQUEST_INVALID', { violations: [{ fieldName: 'identityAttributes.code', hint: 'must be present' }] })
    }
    const { version } = await findRequestParties(parts.db, applicationKey, '')
    if (version === undefined) throw new PawlError('ACTIVATION_FAILED', { detail: 'the application version is gone' })
    const keys = await exchangeKeys(parts, parts.protocol, version.applicationId, code, {
      // What is not Base64 is no point either and ends like one.
      devicePublicKey: parseBase64(nested.devicePublicKey) ?? new Uint8Array(0),
      name: nested.activationName ?? null,
      platform: nested.platform ?? null,
      deviceInfo: nested.deviceInfo ?? null,
      extras: nested.extras ?? null,
      externalId: nested.externalId ?? null,
    })
    const { activationId, serverPublicKey, ctrData } = keys
    return {
      activationData: sealNested({ activationId, serverPublicKey: toBase64(serverPublicKey), ctrData: toBase64(ctrData) }),
      customAttributes: request.customAttributes ?? {},
    }
  },
})
