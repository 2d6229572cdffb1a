// DELETE /admin/applications/{id}/claims/{userId}: takes it away (v3 §13).
import { requireApplication } from '../../../../domain/application/application.ts'
import { Ok } from '../../../../http/types.ts'
import { deleteUserClaims } from '../../../../storage/user-claims.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { auditedClaims, OfUser, refuseClaims } from './claims.ts'

export const claimsRemove = auditedEndpoint({
  method: 'DELETE',
  path: '/admin/applications/:id/claims/:userId',
  operationId: 'removeClaims',
  summary: 'Removes what phones are told about a user',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfUser,
  response: Ok,
  async handle({ params: { id, userId }, tx }) {
    await requireApplication(tx, id)
    if (!(await deleteUserClaims(tx, id, userId))) refuseClaims(userId)
    return { status: 'OK' as const }
  },
  audited: auditedClaims,
})
