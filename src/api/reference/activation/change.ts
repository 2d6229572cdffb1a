// What block, unblock, remove and status/update do to an activation, as the reference does it: what is so already is no error (cloud §15.2).
import { changeRegistration } from '../../../domain/activation/registration.ts'
import { type ErrorCode, PawlError } from '../../../lib/errors.ts'
import type { Pool, Tx } from '../../../storage/database/database.ts'
import type { RegistrationDetailRow } from '../../../storage/activation/search.ts'
import type { ReferenceCall } from '../endpoint.ts'
import { findOwn, refuseState } from '../../cloud/own-registration.ts'

/** What an activation becomes. */
export type Target = 'ACTIVE' | 'BLOCKED' | 'REMOVED'

interface Wanted {
  readonly to: Target
  readonly reason?: string | null | undefined
  readonly externalUserId?: string | null | undefined
}

/**
 * Makes an activation what it is to be, and gives it as it is then. Throws REGISTRATION_NOT_FOUND, or REGISTRATION_CHANGE_REFUSED where its state
 * does not allow that.
 */
export async function changeTo(
  call: ReferenceCall,
  activationId: string,
  { to, reason = null, externalUserId = null }: Wanted,
  db: Pool | Tx = call.parts.db,
): Promise<RegistrationDetailRow> {
  const { parts, applicationId, caller } = call
  const row = await findOwn(call, activationId, db)
  if (isSoAlready(row, to)) return row
  requireChangeable(row, to)
  const owner = { applicationId, userId: row.userId, activationId }
  try {
    await changeRegistration({ ...parts, db }, owner, {
      change: CHANGE[to],
      reason,
      externalUserId,
      verifiedBy: caller.username,
    })
  } catch (error) {
    if (!(error instanceof PawlError && REFUSALS.has(error.code))) throw error
    // The same change by another request, since the look above, is no error either.
    const other = await findOwn(call, activationId, db)
    if (isSoAlready(other, to)) return other
    throw error
  }
  return await findOwn(call, activationId, db)
}

/** A temporary block, which ends by itself, is not yet the block that a bank asks for. */
const isSoAlready = ({ state, blockExpiresAt }: RegistrationDetailRow, to: Target): boolean =>
  state === to && (to !== 'BLOCKED' || blockExpiresAt === null)

/** Throws REGISTRATION_CHANGE_REFUSED where the state of an activation does not allow what it is to become. */
function requireChangeable({ state }: Pick<RegistrationDetailRow, 'state'>, to: Target): void {
  if (state === to) return
  if (state === 'REMOVED' || (to !== 'REMOVED' && state !== 'ACTIVE' && state !== 'BLOCKED')) refuseState(state)
}

const REFUSALS: ReadonlySet<ErrorCode> = new Set(['REGISTRATION_NOT_FOUND', 'REGISTRATION_CHANGE_REFUSED'])
const CHANGE = { ACTIVE: 'UNBLOCK', BLOCKED: 'BLOCK', REMOVED: 'REMOVE' } as const
