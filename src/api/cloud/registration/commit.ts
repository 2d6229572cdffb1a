// POST /registration/commit: the bank confirms the device. Spec: cloud §3.3, v3 §8.5.
import { Type } from '@sinclair/typebox'
import { commitRegistration } from '../../../domain/activation/registration.ts'
import { Ok } from '../../../http/types.ts'
import { namedOwnerOf, refuseWithoutApplication } from '../application-of.ts'
import { cloudEndpoint } from '../endpoint.ts'
import { OptionalText, UserId } from '../fields.ts'

export const registrationCommit = cloudEndpoint({
  method: 'POST',
  path: '/registration/commit',
  operationId: 'commitRegistration',
  summary: 'Confirms the device of a registration',
  errors: ['REGISTRATION_NOT_FOUND', 'OTP_INVALID'],
  roles: ['admin', 'integration'],
  body: Type.Object({
    userId: UserId,
    externalUserId: OptionalText,
    /** Not in the contract: for a registration that demands one here. */
    otp: OptionalText,
  }),
  response: Ok,
  async handle(call) {
    const { userId, externalUserId, otp } = call.body
    const named = await namedOwnerOf(call, userId)
    const outcome = await commitRegistration(call.parts, named, { otp: otp ?? null, externalUserId: externalUserId ?? null })
    if (outcome === 'NO_APPLICATION') throw await refuseWithoutApplication(call, 'REGISTRATION_NOT_FOUND')
    return { status: 'OK' as const }
  },
})
