// POST /registration/commit: the bank confirms the device. Spec: cloud §3.3.
import { Type } from '@sinclair/typebox'
import { commitRegistration } from '../../../domain/registration.ts'
import { Ok } from '../../../http/types.ts'
import { cloudEndpoint, ownerOf } from '../endpoint.ts'
import { Identifier, OptionalText } from '../fields.ts'

export const registrationCommit = cloudEndpoint({
  method: 'POST',
  path: '/registration/commit',
  roles: ['admin', 'integration'],
  body: Type.Object({ userId: Identifier, externalUserId: OptionalText }),
  response: Ok,
  async handle(call) {
    const { userId, externalUserId } = call.body
    await commitRegistration(call.parts, await ownerOf(call, userId), externalUserId ?? null)
    return { status: 'OK' as const }
  },
})
