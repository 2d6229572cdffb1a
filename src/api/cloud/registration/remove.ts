// DELETE /registration: removes (cloud §3).
import { changeRegistration } from '../../../domain/activation/registration.ts'
import { Ok } from '../../../http/types.ts'
import { ownerOf } from '../application-of.ts'
import { cloudEndpoint } from '../endpoint.ts'
import { OfUser } from './user.ts'

export const registrationRemove = cloudEndpoint({
  method: 'DELETE',
  path: '/registration',
  operationId: 'removeRegistration',
  summary: 'Removes a registration',
  errors: ['REGISTRATION_NOT_FOUND'],
  roles: ['admin', 'integration'],
  query: OfUser,
  response: Ok,
  async handle(call) {
    const owner = await ownerOf(call, call.query.userId)
    await changeRegistration(call.parts, owner, { change: 'REMOVE', reason: null, externalUserId: null })
    return { status: 'OK' as const }
  },
})
