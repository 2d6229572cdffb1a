// GET /v2/registrations/{id}/device-keys: answers the public keys of a phone, for the bank's own verification and its PKI. Spec: cloud §14.3.
import { Type } from '@sinclair/typebox'
import { AnyMembers } from '../../http/types.ts'
import { PawlError } from '../../lib/errors.ts'
import { describeDeviceKey, importDeviceKeys } from '../../protocol/device-key.ts'
import { findDeviceKeys } from '../../storage/activation/find.ts'
import { applicationOf } from '../cloud/application-of.ts'
import { cloudEndpoint } from '../cloud/endpoint.ts'
import { OfMadeId, State } from '../cloud/fields.ts'
import { Algorithm } from './members.ts'

export const deviceKeys = cloudEndpoint({
  route: 'GET /v2/registrations/:id/device-keys',
  operationId: 'readDeviceKeys',
  summary: 'The public device keys of a phone',
  description:
    'Both forms of each key: SubjectPublicKeyInfo as PEM, and JWK. There is none before the key exchange, and a phone that moves to protocol 4 has ' +
    'others afterwards. `state` says whether they are good now.',
  errors: ['REGISTRATION_NOT_FOUND'],
  roles: ['admin', 'integration', 'read-only'],
  params: OfMadeId,
  response: Type.Object(
    {
      activationId: Type.String(),
      userId: Type.String(),
      state: State,
      keys: Type.Array(Type.Object({ algorithm: Algorithm, pem: Type.String(), jwk: AnyMembers })),
    },
    { title: 'DeviceKeys' },
  ),
  async handle(call) {
    const { db, platform } = call.parts
    const applicationId = await applicationOf(call)
    const row = await findDeviceKeys(db, { applicationId, activationId: call.params.id, at: new Date(platform.now()) })
    if (row === undefined) throw new PawlError('REGISTRATION_NOT_FOUND')
    const { activationId, userId, state, algorithm, devicePublicKey } = row
    const keys = devicePublicKey === null ? [] : importDeviceKeys(algorithm ?? 'EC_P256', devicePublicKey)
    return { activationId, userId, state, keys: keys.map(describeDeviceKey) }
  },
})
