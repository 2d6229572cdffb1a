// Everything that pawl stores on one user of the bank, for a user who asks for it.
import { findAllUserClaims, readUserRows, type UserRow, type UserRows } from '../../storage/user/data.ts'
import { openClaims } from '../user-info/user-info.ts'
import type { KeyParts } from '../secrets/secrets.ts'

interface UserExport extends UserRows {
  readonly userId: string
  readonly exportedAt: Date
  /** What phones are told about the user. */
  readonly claims: readonly UserRow[]
}

/** The rows of a user in all applications, none of them secret; lists are empty where there is nothing. */
export async function exportUser({ db, platform, recordKeys }: KeyParts, userId: string): Promise<UserExport> {
  const stored = await findAllUserClaims(db, userId)
  const claims = stored.map((row) => ({
    application_id: row.applicationId,
    updated_at: row.updatedAt,
    claims: openClaims({ recordKeys }, row.applicationId, userId, row.claims),
  }))
  return { userId, exportedAt: new Date(platform.now()), ...(await readUserRows(db, userId)), claims }
}
