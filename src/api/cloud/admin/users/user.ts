// What the endpoints of credentials share (cloud §2, §10).
import { Type } from '@sinclair/typebox'
import { findCredential } from '../../../../storage/credentials.ts'
import { isAddressOrRange } from '../../../../lib/address-ranges.ts'
import { PawlError } from '../../../../lib/errors.ts'
import type { Db } from '../../../../storage/database.ts'
import type { Role } from '../../../../storage/schema.ts'
import type { Audited } from '../../audited-endpoint.ts'
import { Username } from '../../fields.ts'

export const RoleName = Type.Unsafe<Role>(Type.String({ enum: ['admin', 'integration', 'internal', 'read-only'] }))

/** Where a credential may be used from. */
export const AllowedAddresses = Type.Array(
  Type.String({ minLength: 2, maxLength: 50, description: 'must be an IP address or a CIDR range', examples: ['10.20.0.0/16'] }),
  { maxItems: 50, uniqueItems: true },
)

/** Throws REQUEST_INVALID for what is neither an address nor a range. */
export function requireRanges(allowedAddresses: readonly string[]): void {
  const wrong = allowedAddresses.find((text) => !isAddressOrRange(text))
  if (wrong === undefined) return
  const violations = [{ fieldName: 'allowedAddresses', invalidValue: wrong, hint: 'must be an IP address or a CIDR range' }]
  throw new PawlError('REQUEST_INVALID', { detail: 'neither an address nor a range', violations })
}

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
  const { role, applicationId, isDisabled, expiresAt, allowedAddresses, certificates } = user
  const passwords = user.passwords.map((password) => ({ scheme: password.scheme, expiresAt: password.expiresAt }))
  return {
    username,
    role,
    application: applicationId,
    isDisabled,
    expiresAt,
    ...(allowedAddresses.length > 0 && { allowedAddresses }),
    ...(certificates.length > 0 && { certificates }),
    passwords,
  }
}
