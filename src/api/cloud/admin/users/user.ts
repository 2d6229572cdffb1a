// What the endpoints of credentials share (cloud §2, §10).
import { Type } from '@sinclair/typebox'
import { findCredential } from '../../../../storage/credentials.ts'
import type { Db } from '../../../../storage/database.ts'
import type { Role } from '../../../../storage/schema.ts'
import type { Audited } from '../../audited-endpoint.ts'
import { Username } from '../../fields.ts'

export const RoleName = Type.Unsafe<Role>(Type.String({ enum: ['admin', 'integration', 'internal', 'read-only'] }))

/** Of the path. */
export const OfUser = Type.Object({ name: Username })

/** How changes of a credential are recorded. */
export const auditedUser: Audited<unknown, unknown, { readonly name: string }, unknown> = {
  target: ({ params: { name } }) => `user ${name}`,
  view: ({ params: { name }, tx }) => viewUser(tx, name),
}

/** A user for the audit log: of passwords only which kind there are and until when. */
export async function viewUser(db: Db, username: string) {
  const user = await findCredential(db, username)
  if (user === undefined) return undefined
  const { role, applicationId, isDisabled, expiresAt } = user
  const passwords = user.passwords.map((password) => ({ scheme: password.scheme, expiresAt: password.expiresAt }))
  return { username, role, application: applicationId, isDisabled, expiresAt, passwords }
}
