// Registrations of the application of the credential, by their ids.
import { PawlError } from '../../lib/errors.ts'
import { findRegistrationDetail, type RegistrationDetailRow } from '../../storage/activation/search.ts'
import type { Db } from '../../storage/database/database.ts'
import type { ActivationState } from '../../storage/database/schema.ts'
import type { Platform } from '../../lib/platform.ts'

/** What a registration is looked for with. */
interface OwnCall {
  readonly parts: { readonly db: Db; readonly platform: Platform }
  /** Of the credential. */
  readonly applicationId: string
}

/** One registration as it is now. Throws REGISTRATION_NOT_FOUND for one of another application, or of none. */
export async function findOwn(
  { parts, applicationId }: OwnCall,
  activationId: string,
  db: Db = parts.db,
): Promise<RegistrationDetailRow> {
  const row = await findRegistrationDetail(db, applicationId, activationId, new Date(parts.platform.now()))
  if (row === undefined) throw new PawlError('REGISTRATION_NOT_FOUND')
  return row
}

/** The same, unless it is removed. Throws REGISTRATION_CHANGE_REFUSED then. */
export async function findOwnLive(call: OwnCall, activationId: string): Promise<RegistrationDetailRow> {
  const row = await findOwn(call, activationId)
  if (row.state === 'REMOVED') refuseState(row.state)
  return row
}

/** Throws REGISTRATION_CHANGE_REFUSED. */
export function refuseState(state: ActivationState): never {
  throw new PawlError('REGISTRATION_CHANGE_REFUSED', { detail: `not in ${state}` })
}
