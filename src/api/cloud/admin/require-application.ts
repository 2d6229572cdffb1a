// The check that starts everything below /admin/applications/{id} (cloud §10).
import { PawlError } from '../../../lib/errors.ts'
import { findApplication } from '../../../storage/applications.ts'
import type { Db } from '../../../storage/database.ts'

/** Throws ADMINISTRATION_REFUSED when there is no such application. */
export async function requireApplication(db: Db, id: string): Promise<void> {
  if ((await findApplication(db, id)) === undefined)
    throw new PawlError('ADMINISTRATION_REFUSED', { detail: `no application ${id}` })
}
