// What a credential must be given before it may open what phones encrypted (cloud §2.4).
import { PawlError } from '../../lib/errors.ts'
import type { Right } from '../../storage/database/schema.ts'

/** Throws ROLE_FORBIDDEN for a credential without the right. */
export function requireRight({ rights }: { readonly rights: readonly Right[] }, right: Right): void {
  if (rights.includes(right)) return
  const hint = `must have the right ${right} (PATCH /admin/users/{name})`
  throw new PawlError('ROLE_FORBIDDEN', { detail: hint, violations: [{ fieldName: 'credential', hint }] })
}
