// PUT /admin/applications/{id}/claims/{userId}: replaces what phones are told (v3 §13).
import { Type } from '@sinclair/typebox'
import { requireApplication } from '../../../../domain/application/application.ts'
import { writeClaims } from '../../../../domain/user-info/user-info.ts'
import { Ok } from '../../../../http/types.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { auditedClaims, OfUser } from './claims.ts'

export const claimsReplace = auditedEndpoint({
  method: 'PUT',
  path: '/admin/applications/:id/claims/:userId',
  operationId: 'replaceClaims',
  summary: 'Replaces what phones are told about a user',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfUser,
  // A request without a body must not empty them: that is what DELETE is for.
  body: Type.Record(Type.String(), Type.Unknown(), { minProperties: 1 }),
  response: Ok,
  async handle({ params: { id, userId }, body, tx, parts }) {
    await requireApplication(tx, id)
    await writeClaims({ ...parts, db: tx }, id, userId, body)
    return { status: 'OK' as const }
  },
  audited: auditedClaims,
})
