// PUT /registration: blocks, unblocks or removes (cloud §3).
import { Type } from '@sinclair/typebox'
import { changeRegistration } from '../../../domain/activation/registration.ts'
import { Ok } from '../../../http/types.ts'
import { ownerOf } from '../application-of.ts'
import { cloudEndpoint } from '../endpoint.ts'
import { OptionalText, UserId } from '../fields.ts'

export const registrationChange = cloudEndpoint({
  method: 'PUT',
  path: '/registration',
  operationId: 'changeRegistration',
  summary: 'Blocks, unblocks or removes a registration',
  description: '`BLOCK` is for ACTIVE ones; it also makes a temporary block, which is seen as BLOCKED, one that lasts.',
  errors: ['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'],
  roles: ['admin', 'integration'],
  body: Type.Object({
    userId: UserId,
    change: Type.Unsafe<'BLOCK' | 'UNBLOCK' | 'REMOVE'>(Type.String({ enum: ['BLOCK', 'UNBLOCK', 'REMOVE'] })),
    externalUserId: OptionalText,
    blockReason: OptionalText,
  }),
  response: Ok,
  async handle(call) {
    const { userId, change, blockReason, externalUserId } = call.body
    const owner = await ownerOf(call, userId)
    await changeRegistration(call.parts, owner, { change, reason: blockReason ?? null, externalUserId: externalUserId ?? null })
    return { status: 'OK' as const }
  },
})
