// /admin/applications/{id}/claims/{userId}: stores the claims about a user that pawl gives to the user's phones (v3 §13, cloud §10).
import { Type } from '@sinclair/typebox'
import { requireApplication } from '../../../domain/application/application.ts'
import { readStoredClaims, writeClaims } from '../../../domain/user-info/user-info.ts'
import { AnyMembers, MembersOf } from '../../../http/types.ts'
import { notFound } from '../../../lib/errors.ts'
import { deleteUserClaims } from '../../../storage/user/claims.ts'
import { type Audited, auditedEndpoint } from '../audited-endpoint.ts'
import { adminRead } from '../endpoint.ts'
import { Identifier, UserId } from '../fields.ts'

const OfUser = Type.Object({ id: Identifier, userId: UserId })

/** Records changes of claims, with the names of the claims only. */
const auditedClaims: Audited<{ readonly id: string; readonly userId: string }> = {
  target: ({ params: { id, userId } }) => `claims about ${userId} in ${id}`,
  // The values of claims are about a person, and the audit log is not encrypted.
  view: async ({ params: { id, userId }, parts }) => {
    const claims = await readStoredClaims(parts, id, userId)
    return claims && { names: Object.keys(claims) }
  },
}

/** Throws ADMINISTRATION_REFUSED, because there are no claims about the user. */
function refuseClaims(userId: string): never {
  throw notFound('claim', `about ${userId}`)
}

const claimsRead = adminRead({
  route: 'GET /admin/applications/:id/claims/:userId',
  operationId: 'readClaims',
  summary: 'Reads what phones are told about a user',
  errors: ['ADMINISTRATION_REFUSED'],
  params: OfUser,
  response: AnyMembers,
  async handle({ params: { id, userId }, parts }) {
    await requireApplication(parts.db, id)
    return (await readStoredClaims(parts, id, userId)) ?? refuseClaims(userId)
  },
})

const claimsReplace = auditedEndpoint({
  route: 'PUT /admin/applications/:id/claims/:userId',
  operationId: 'replaceClaims',
  summary: 'Replaces what phones are told about a user',
  params: OfUser,
  // A request without a body must not remove all claims. That is done by DELETE.
  body: MembersOf(Type.Unknown(), { minProperties: 1 }),
  async handle({ params: { id, userId }, body, parts }) {
    await requireApplication(parts.db, id)
    await writeClaims(parts, id, userId, body)
  },
  audited: auditedClaims,
})

const claimsRemove = auditedEndpoint({
  route: 'DELETE /admin/applications/:id/claims/:userId',
  operationId: 'removeClaims',
  summary: 'Removes what phones are told about a user',
  params: OfUser,
  async handle({ params: { id, userId }, parts }) {
    await requireApplication(parts.db, id)
    if (!(await deleteUserClaims(parts.db, id, userId))) refuseClaims(userId)
  },
  audited: auditedClaims,
})

export const claimEndpoints = [claimsRead, claimsReplace, claimsRemove]
