// Makes the first administrator of an installation, and gives an administrator a new password on the command line.
import { PawlError, StartError } from '../../lib/errors.ts'
import { insertAdminEvent, lockAdministration } from '../../storage/credential/admin-events.ts'
import { deleteCredential, findCredential, hasAdmin } from '../../storage/credential/credentials.ts'
import { inTransaction } from '../../storage/database/database.ts'
import type { CredentialParts, Credentials, PreparedPassword } from './credential.ts'
import { isCredentialAuthentic } from './mac.ts'

/**
 * Gives the configured administrator the configured password, if there is one. Creates a missing user and replaces a different password. Throws
 * StartError when a user with another role has the name.
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
    // The settings of the operator name the administrator, so the altered credential is replaced.
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

/**
 * Creates an administrator and returns the password. Undefined when another process of the same first start has created it, and has shown its
 * password.
 */
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
 * Replaces the credential of a name by a new administrator, and returns its generated password. The old passwords of the name end. It is for the
 * operator with the database and the master key. The audit log of administrators records it.
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
