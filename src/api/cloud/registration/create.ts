// POST /registration: one device a user, bound through an activation code (cloud §3).
import { Type } from '@sinclair/typebox'
import { createRegistration } from '../../../domain/activation/registration.ts'
import { namedOwnerOf, refuseWithoutApplication } from '../application-of.ts'
import { cloudEndpoint } from '../endpoint.ts'
import { OfUser, QR_TEXT } from './user.ts'

export const registrationCreate = cloudEndpoint({
  method: 'POST',
  path: '/registration',
  operationId: 'createRegistration',
  summary: 'Creates a registration',
  description: 'The whole answer is the content of the QR code; its part before `#` is the activation code for typing.',
  errors: ['REGISTRATION_EXISTS', 'REGISTRATION_NOT_FOUND'],
  roles: ['admin', 'integration'],
  body: OfUser,
  response: Type.Object({ activationQrCodeData: Type.String({ examples: [QR_TEXT] }) }),
  async handle(call) {
    const created = await createRegistration(call.parts, await namedOwnerOf(call, call.body.userId))
    if (created === undefined) throw await refuseWithoutApplication(call, 'REGISTRATION_NOT_FOUND')
    return { activationQrCodeData: created.activationQrCodeData }
  },
})
