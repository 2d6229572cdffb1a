// GET /admin/applications/{id}/claims/{userId}: what phones are told about a user (v3 §13).
import { requireApplication } from '../../../../domain/application/application.ts'
import { readStoredClaims } from '../../../../domain/user-info/user-info.ts'
import { AnyMembers } from '../../../../http/types.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { OfUser, refuseClaims } from './claims.ts'

const Claims = AnyMembers

export const claimsRead = cloudEndpoint({
  method: 'GET',
  path: '/admin/applications/:id/claims/:userId',
  operationId: 'readClaims',
  summary: 'Reads what phones are told about a user',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: OfUser,
  response: Claims,
  async handle({ params: { id, userId }, parts }) {
    await requireApplication(parts.db, id)
    return (await readStoredClaims(parts, id, userId)) ?? refuseClaims(userId)
  },
})
