// DELETE /admin/users/{name}: takes a credential away (cloud §2).
import { Ok } from '../../../../http/types.ts'
import { notFound, PawlError } from '../../../../lib/errors.ts'
import { deleteCredential } from '../../../../storage/credentials.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { auditedUser, OfUser } from './user.ts'

export const userRemove = auditedEndpoint({
  method: 'DELETE',
  path: '/admin/users/:name',
  operationId: 'removeUser',
  summary: 'Removes a credential',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfUser,
  response: Ok,
  async handle({ params: { name }, caller, tx, parts, afterCommit }) {
    if (name === caller.username) throw new PawlError('ADMINISTRATION_REFUSED', { detail: 'nobody removes their own credential' })
    if (!(await deleteCredential(tx, name))) throw notFound(`user ${name}`)
    afterCommit(parts.credentials.forget)
    return { status: 'OK' as const }
  },
  audited: auditedUser,
})
