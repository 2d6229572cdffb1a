// The administrator of an installation: the first start makes it, and the command line can give it a new password.
import { PawlError, StartError } from '../../lib/errors.ts'
import { insertAdminEvent, lockAdministration } from '../../storage/credential/admin-events.ts'
import { deleteCredential, findCredential, hasAdmin } from '../../storage/credential/credentials.ts'
import { inTransaction } from '../../storage/database/database.ts'
import type { CredentialParts, Credentials, PreparedPassword } from './credential.ts'
import { isCredentialAuthentic } from './mac.ts'

/**
 * Makes sure that the configured administrator has the configured password, if there is one: a user who is missing is created, a differing
 * password replaced. Throws StartError when the name is another user's.
 */
export async function applyAdminPassword(
  parts: CredentialParts,
  credentials: Credentials,
  adminUser: string,
  adminPassword: string | undefined,
): Promise<void> {
  const existing = await findCredential(parts.db, adminUser)
  if (existing !== undefined && !isCredentialAuthentic(parts.installationKeys.credentialMac, existing)) {
    parts.events.credentialAltered({ username: adminUser })
    // The operator says who the administrator is, and the database does not: the credential is made anew.
    if (adminPassword !== undefined)
      await remakeAdmin(parts, credentials, adminUser, await credentials.prepare(adminPassword), 'start')
    return
  }
  if (existing !== undefined && existing.role !== 'admin')
    throw new StartError(
      `PAWL_ADMIN_USER names ${adminUser}, who is no administrator; name one, or somebody who is not there yet`,
    )
  if (adminPassword === undefined) return
  if (existing === undefined) {
    await createAdmin(parts, credentials, adminUser, adminPassword)
  } else if (!(await credentials.isPassword(adminUser, adminPassword))) {
    const prepared = await credentials.prepare(adminPassword, adminUser)
    await inTransaction(parts.db, (tx) => credentials.reset(tx, adminUser, prepared, 0))
    parts.events.adminPasswordReplaced({ username: adminUser })
  }
}

/**
 * Makes the first administrator with a generated password, and returns the password; undefined when there is an administrator. Call it when the
 * server listens, because the password of a failed start would be lost.
 */
export const createFirstAdmin = async (
  parts: CredentialParts,
  credentials: Credentials,
  adminUser: string,
): Promise<string | undefined> => ((await hasAdmin(parts.db)) ? undefined : createAdmin(parts, credentials, adminUser, undefined))

/** Returns the password, or undefined when another process of the same first start was faster and has shown its own. */
async function createAdmin(
  parts: CredentialParts,
  credentials: Credentials,
  username: string,
  chosen: string | undefined,
): Promise<string | undefined> {
  try {
    const prepared = await credentials.prepare(chosen)
    await inTransaction(parts.db, (tx) => credentials.create(tx, { username, ...ADMIN }, prepared))
    return prepared.password
  } catch (error) {
    if (error instanceof PawlError && error.code === 'ADMINISTRATION_REFUSED') return undefined
    throw error
  }
}

/**
 * Makes an administrator anew, and returns the generated password. The passwords of an earlier credential of that name end. It is for the
 * operator who has the database and the master key, and is recorded in the audit log of administrators.
 */
export async function resetAdmin(parts: CredentialParts, credentials: Credentials, username: string): Promise<string> {
  const prepared = await credentials.prepare(undefined)
  await remakeAdmin(parts, credentials, username, prepared, 'command line')
  return prepared.password
}

async function remakeAdmin(
  parts: CredentialParts,
  credentials: Credentials,
  username: string,
  prepared: PreparedPassword,
  by: string,
): Promise<void> {
  await inTransaction(parts.db, async (tx) => {
    await lockAdministration(tx)
    const before = await findCredential(tx, username)
    await deleteCredential(tx, username)
    await credentials.create(tx, { username, ...ADMIN }, prepared)
    await insertAdminEvent(tx, {
      username: by,
      action: 'admin reset',
      target: `user ${username}`,
      before: before === undefined ? null : JSON.stringify({ username, role: before.role, application: before.applicationId }),
      after: JSON.stringify({ username, role: 'admin', application: null }),
      occurredAt: new Date(parts.platform.now()),
    })
  })
}

const ADMIN = { role: 'admin', applicationId: null, expiresAt: null } as const
