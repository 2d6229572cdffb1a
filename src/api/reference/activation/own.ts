// Activations of the application of the credential, by their ids.
import { PawlError } from '../../../lib/errors.ts'
import type { Db } from '../../../storage/database/database.ts'
import { findRegistrationDetail, type RegistrationDetailRow } from '../../../storage/activation/search.ts'
import type { ActivationState } from '../../../storage/database/schema.ts'
import type { ReferenceCall } from '../endpoint.ts'

/** One activation as it is now. Throws REGISTRATION_NOT_FOUND for one of another application, or of none. */
export async function findOwn(
  { parts, applicationId }: Pick<ReferenceCall, 'parts' | 'applicationId'>,
  activationId: string,
  db: Db = parts.db,
): Promise<RegistrationDetailRow> {
  const row = await findRegistrationDetail(db, applicationId, activationId, new Date(parts.platform.now()))
  if (row === undefined) throw new PawlError('REGISTRATION_NOT_FOUND')
  return row
}

/** Throws REGISTRATION_CHANGE_REFUSED. */
export function refuseState(state: ActivationState): never {
  throw new PawlError('REGISTRATION_CHANGE_REFUSED', { detail: `not in ${state}` })
}
