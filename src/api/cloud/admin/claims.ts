// /admin/applications/{id}/claims/{userId}: what phones are told about their user, beyond the contract (v3 §13, cloud §10).
import { Type } from '@sinclair/typebox'
import { requireApplication } from '../../../domain/application/application.ts'
import { readStoredClaims, writeClaims } from '../../../domain/user-info/user-info.ts'
import { AnyMembers, Ok } from '../../../http/types.ts'
import { notFound } from '../../../lib/errors.ts'
import { deleteUserClaims } from '../../../storage/user-claims.ts'
import { type Audited, cloudEndpoint } from '../endpoint.ts'
import { Identifier, UserId } from '../fields.ts'

const path = '/admin/applications/:id/claims/:userId'
const OfUser = Type.Object({ id: Identifier, userId: UserId })
const Claims = AnyMembers

const audited: Audited<unknown, unknown, { readonly id: string; readonly userId: string }, unknown> = {
  target: ({ params: { id, userId } }) => `claims about ${userId} in ${id}`,
  // What they say about a person stays where it is encrypted.
  view: async ({ params: { id, userId }, parts }) => {
    const claims = await readStoredClaims(parts, id, userId)
    return claims && { names: Object.keys(claims) }
  },
}

export const claimsRead = cloudEndpoint({
  method: 'GET',
  path,
  summary: 'Reads what phones are told about a user',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: OfUser,
  response: Claims,
  async handle({ params: { id, userId }, parts }) {
    await requireApplication(parts.db, id)
    return (await readStoredClaims(parts, id, userId)) ?? refuse(userId)
  },
})

export const claimsReplace = cloudEndpoint({
  method: 'PUT',
  path,
  summary: 'Replaces what phones are told about a user',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfUser,
  // A request without a body must not empty them: that is what DELETE is for.
  body: Type.Record(Type.String(), Type.Unknown(), { minProperties: 1 }),
  response: Ok,
  async handle({ params: { id, userId }, body, parts }) {
    await requireApplication(parts.db, id)
    await writeClaims(parts, id, userId, body)
    return { status: 'OK' as const }
  },
  audited,
})

export const claimsRemove = cloudEndpoint({
  method: 'DELETE',
  path,
  summary: 'Removes what phones are told about a user',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfUser,
  response: Ok,
  async handle({ params: { id, userId }, parts }) {
    await requireApplication(parts.db, id)
    if (!(await deleteUserClaims(parts.db, id, userId))) refuse(userId)
    return { status: 'OK' as const }
  },
  audited,
})

function refuse(userId: string): never {
  throw notFound(`claims about ${userId}`)
}
