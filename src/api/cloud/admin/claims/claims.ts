// What the endpoints of claims share: what phones are told about their user (v3 §13, cloud §10).
import { Type } from '@sinclair/typebox'
import { readStoredClaims } from '../../../../domain/user-info/user-info.ts'
import { notFound } from '../../../../lib/errors.ts'
import type { Audited } from '../../audited-endpoint.ts'
import { Identifier, UserId } from '../../fields.ts'

/** Of the path. */
export const OfUser = Type.Object({ id: Identifier, userId: UserId })

/** How changes of claims are recorded: by their names. */
export const auditedClaims: Audited<unknown, unknown, { readonly id: string; readonly userId: string }, unknown> = {
  target: ({ params: { id, userId } }) => `claims about ${userId} in ${id}`,
  // What they say about a person stays where it is encrypted.
  view: async ({ params: { id, userId }, tx, parts }) => {
    const claims = await readStoredClaims({ ...parts, db: tx }, id, userId)
    return claims && { names: Object.keys(claims) }
  },
}

export function refuseClaims(userId: string): never {
  throw notFound(`claims about ${userId}`)
}
