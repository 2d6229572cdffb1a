// Roles, rights and members that several doors share.
import { Type } from '@sinclair/typebox'
import { PawlError } from '../../lib/errors.ts'
import type { SignatureAlgorithm } from '../../protocol/protocol.ts'
import type { ActivationState, Right, Role } from '../../storage/database/schema.ts'

/** Who may have something checked. */
export const DOOR_ROLES: readonly Role[] = ['admin', 'integration', 'verification']

/** Throws ROLE_FORBIDDEN for a credential without the right. One must be given before a bank opens what phones encrypted (cloud §2.4). */
export function requireRight({ rights }: { readonly rights: readonly Right[] }, right: Right): void {
  if (rights.includes(right)) return
  const hint = `must have the right ${right} (PATCH /admin/users/{name})`
  throw new PawlError('ROLE_FORBIDDEN', { detail: hint, violations: [{ fieldName: 'credential', hint }] })
}

/** Why a signature is not valid. */
export type SignatureRefusal = 'SIGNATURE_WRONG' | 'FORM' | 'KEYS_MISSING' | 'STATE' | 'UNKNOWN'

const REFUSALS: readonly SignatureRefusal[] = ['SIGNATURE_WRONG', 'FORM', 'KEYS_MISSING', 'STATE', 'UNKNOWN']

const STATES: readonly ActivationState[] = ['PENDING_COMMIT', 'ACTIVE', 'BLOCKED', 'REMOVED']

/** States in which a signature is good. An activation that is CREATED has no keys. */
export const States = Type.Array(Type.Unsafe<ActivationState>(Type.String({ enum: [...STATES] })), { minItems: 1 })

const ALGORITHMS: readonly SignatureAlgorithm[] = ['ES256', 'ES384', 'ML-DSA-65', 'ML-DSA-87']

/** How a device key signs. */
export const Algorithm = Type.Unsafe<SignatureAlgorithm>(Type.String({ enum: [...ALGORITHMS] }))

/** Members of an answer that say what was found out, and of which activation; the last three are absent unless it is one of this application. */
export const SignatureVerdict = {
  isValid: Type.Boolean(),
  reason: Type.Optional(
    Type.Unsafe<SignatureRefusal>(
      Type.String({ enum: [...REFUSALS], description: 'for the log of the bank, never for the phone' }),
    ),
  ),
  activationId: Type.Optional(Type.String()),
  userId: Type.Optional(Type.String()),
  state: Type.Optional(Type.Unsafe<ActivationState>(Type.String({ enum: ['CREATED', ...STATES] }))),
}
