// activation/create: binds the device to the activation that waits for its code, or to a user whom a provider recognises. Two encrypted
// layers. Spec: v3 §8.3 to §8.6.
import { type Static, Type } from '@sinclair/typebox'
import { type DeviceDescription, exchangeKeys } from '../../../domain/activation.ts'
import { activateDirectly, recogniseUser } from '../../../domain/direct-activation.ts'
import { readUserInfoOfNew } from '../../../domain/user-info.ts'
import { Absent, AnyMembers, NotBlank, Text } from '../../../http/types.ts'
import { parseBase64, toBase64 } from '../../../lib/base64.ts'
import { PawlError } from '../../../lib/errors.ts'
import { findRequestParties } from '../../../storage/activations.ts'
import { deviceEndpoint, type DeviceParts } from '../parts.ts'

const Layer1Request = Type.Object({
  // RECOVERY and anything else is no type of this server.
  type: Type.Union([Type.Literal('CODE'), Type.Literal('DIRECT'), Type.Literal('CUSTOM')]),
  identityAttributes: Type.Record(Type.String(), Type.String(), { minProperties: 1 }),
  customAttributes: Absent(AnyMembers),
  activationData: Type.Object({}),
})

const Layer2Request = Type.Object({
  devicePublicKey: NotBlank(128),
  activationOtp: Absent(Type.String()),
  activationName: Absent(Text(255)),
  extras: Absent(Type.String()),
  platform: Absent(Text(255)),
  deviceInfo: Absent(Text(255)),
  externalId: Absent(Text(255)),
})

export const activationCreate = deviceEndpoint({
  path: 'activation/create',
  summary: 'Exchanges keys for an activation code',
  errors: ['ACTIVATION_FAILED', 'USER_INFO_FAILED'],
  order: ['envelope', 'open', 'validate', 'open-nested'],
  encrypt: { scope: 'APPLICATION_SCOPE', sharedInfo1: '/pa/generic/application' },
  nested: { sharedInfo1: '/pa/activation', request: Layer2Request, pick: (layer1) => layer1.activationData },
  request: Layer1Request,
  response: Type.Object({
    activationData: AnyMembers,
    customAttributes: AnyMembers,
    /** When there are claims. */
    userInfo: Type.Optional(AnyMembers),
  }),
  async handle({ request, nested, sealNested, applicationKey, parts }) {
    if (request.type === 'CODE' && request.identityAttributes['code'] === undefined) {
      throw new PawlError('REQUEST_INVALID', { violations: [{ fieldName: 'identityAttributes.code', hint: 'must be present' }] })
    }
    const { version } = await findRequestParties(parts.db, applicationKey, '')
    if (version === undefined) throw new PawlError('ACTIVATION_FAILED', { detail: 'the application version is gone' })
    const { applicationId } = version
    const { keys, customAttributes } = await activate(parts, applicationId, request, nested)
    const { activationId, userId, serverPublicKey, ctrData } = keys
    const userInfo = await readUserInfoOfNew(parts, { applicationId, userId, activationId })
    return {
      activationData: sealNested({ activationId, serverPublicKey: toBase64(serverPublicKey), ctrData: toBase64(ctrData) }),
      customAttributes,
      ...(userInfo && { userInfo }),
    }
  },
})

/** Binds the device in the way its request names. */
async function activate(
  parts: DeviceParts,
  applicationId: string,
  { type, identityAttributes, customAttributes: sent }: Static<typeof Layer1Request>,
  nested: Static<typeof Layer2Request>,
) {
  const customAttributes = sent ?? {}
  const device = describeDevice(nested)
  if (type === 'CODE') {
    const secrets = { code: identityAttributes['code'] ?? '', otp: nested.activationOtp ?? null }
    return { keys: await exchangeKeys(parts, parts.protocol, applicationId, secrets, device), customAttributes }
  }
  const user = await recogniseUser(parts, { applicationId, type, identityAttributes, customAttributes })
  const owner = { applicationId, userId: user.userId }
  const keys = await activateDirectly(parts, parts.protocol, owner, user.isCommitted ? 'ACTIVE' : 'PENDING_COMMIT', device)
  return { keys, customAttributes: user.customAttributes ?? customAttributes }
}

const describeDevice = (nested: Static<typeof Layer2Request>): DeviceDescription => ({
  // What is not Base64 is no point either and ends like one.
  devicePublicKey: parseBase64(nested.devicePublicKey) ?? new Uint8Array(0),
  name: nested.activationName ?? null,
  platform: nested.platform ?? null,
  deviceInfo: nested.deviceInfo ?? null,
  extras: nested.extras ?? null,
  externalId: nested.externalId ?? null,
})
