// /push/registration: shows the push token of a user's phone to a push sender of the bank. The contract does not have this endpoint (mobile-token
// §7).
import { Type } from '@sinclair/typebox'
import { places, unlessAltered } from '../../domain/secrets/secrets.ts'
import { fromUtf8 } from '../../lib/bytes.ts'
import { listPushRegistrations } from '../../storage/token/push-registrations.ts'
import { ownerOf } from './application-of.ts'
import { cloudEndpoint } from './endpoint.ts'
import { OfSeveral, UserId } from './fields.ts'
import { severalDevices } from '../../domain/activation/registration.ts'

export const pushRegistrationRead = cloudEndpoint({
  route: 'GET /push/registration',
  operationId: 'readPushRegistration',
  summary: 'Where pushes reach the phone of a user',
  description:
    'Empty when the user has no phone that takes pushes; a token that was altered in the database counts as none. Of several phones that take pushes, `registrationId` names one.',
  errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'],
  roles: ['admin', 'integration'],
  query: Type.Object({ userId: UserId, registrationId: OfSeveral }),
  response: Type.Object({
    activationId: Type.Optional(Type.String()),
    platform: Type.Optional(Type.String({ description: 'apns, fcm or hms' })),
    environment: Type.Optional(Type.String({ description: 'development or production' })),
    token: Type.Optional(Type.String()),
  }),
  async handle(call) {
    const { applicationId, userId } = await ownerOf(call, call.query.userId)
    const { registrationId } = call.query
    const all = await listPushRegistrations(call.parts.db, applicationId, userId)
    if (all.length > 1 && registrationId === undefined) throw severalDevices()
    const registration = all.find(({ activationId }) => registrationId === undefined || activationId === registrationId)
    if (registration === undefined) return {}
    const { activationId, platform, environment, pushToken } = registration
    const place = places.pushToken({ activationId, applicationId, userId })
    const opened = unlessAltered(() => call.parts.recordKeys.open(place, pushToken))
    if (opened === undefined) return {}
    const token = fromUtf8(opened)
    return { activationId, platform, ...(environment !== null && { environment }), token }
  },
})
