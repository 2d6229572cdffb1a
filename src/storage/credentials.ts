// The tables credential and credential_password: who may call the cloud API.
import { sql } from 'kysely'
import type { Db, Tx } from './database.ts'
import type { Role } from './schema.ts'

export interface CredentialRow {
  readonly username: string
  readonly role: Role
  readonly applicationId: string | null
  readonly isDisabled: boolean
  readonly expiresAt: Date | null
}

export interface PasswordRow {
  readonly scheme: 'generated' | 'chosen'
  readonly salt: Buffer
  readonly passwordHash: Buffer
  readonly expiresAt: Date | null
}

export interface CredentialWithPasswords extends CredentialRow {
  readonly passwords: readonly PasswordRow[]
}

/** A credential with its passwords, newest first. */
export async function findCredential(db: Db, username: string): Promise<CredentialWithPasswords | undefined> {
  const rows = await db
    .selectFrom('credential')
    .leftJoin('credential_password as p', 'p.username', 'credential.username')
    .select([...credentialColumns, 'p.scheme', 'p.salt', 'p.password_hash as passwordHash', 'p.expires_at as passwordExpiresAt'])
    .where('credential.username', '=', username)
    .orderBy('p.created_at', 'desc')
    .execute()
  const [first] = rows
  if (first === undefined) return undefined
  const passwords = rows.flatMap(({ scheme, salt, passwordHash, passwordExpiresAt }) =>
    scheme === null || salt === null || passwordHash === null
      ? []
      : [{ scheme, salt, passwordHash, expiresAt: passwordExpiresAt }],
  )
  const { username: name, role, applicationId, isDisabled, expiresAt } = first
  return { username: name, role, applicationId, isDisabled, expiresAt, passwords }
}

/** All credentials by name. */
export async function listCredentials(db: Db): Promise<CredentialRow[]> {
  return db.selectFrom('credential').select(credentialColumns).orderBy('credential.username').execute()
}

/** True when there is an administrator. */
export async function hasAdmin(db: Db): Promise<boolean> {
  const row = await db.selectFrom('credential').select('username').where('role', '=', 'admin').limit(1).executeTakeFirst()
  return row !== undefined
}

/** Inserts a credential; it has no password yet. Throws a unique violation when the name is taken. */
export async function insertCredential(
  tx: Tx,
  credential: { username: string; role: Role; applicationId: string | null; expiresAt: Date | null; createdAt: Date },
): Promise<void> {
  await tx
    .insertInto('credential')
    .values({
      username: credential.username,
      role: credential.role,
      application_id: credential.applicationId,
      expires_at: credential.expiresAt,
      created_at: credential.createdAt,
    })
    .execute()
}

/** What a new password stores; `passwordHash` is keyed. */
export interface NewPassword {
  readonly passwordId: string
  readonly scheme: 'generated' | 'chosen'
  readonly salt: Uint8Array
  readonly passwordHash: Uint8Array
  readonly createdAt: Date
}

/** Sets a password. Earlier ones end at `previousExpiresAt`, or at once when that is null. */
export async function replacePassword(
  tx: Tx,
  username: string,
  password: NewPassword,
  previousExpiresAt: Date | null,
): Promise<void> {
  if (previousExpiresAt === null) {
    await tx.deleteFrom('credential_password').where('username', '=', username).execute()
  } else {
    await sql`
      update credential_password set expires_at = least(coalesce(expires_at, ${previousExpiresAt}), ${previousExpiresAt})
      where username = ${username}`.execute(tx)
  }
  await tx
    .insertInto('credential_password')
    .values({
      credential_password_id: password.passwordId,
      username,
      scheme: password.scheme,
      salt: password.salt,
      password_hash: password.passwordHash,
      created_at: password.createdAt,
    })
    .execute()
}

/** Deletes a credential and its passwords; false when there was none. */
export async function deleteCredential(db: Db, username: string): Promise<boolean> {
  const deleted = await db.deleteFrom('credential').where('username', '=', username).returning('username').executeTakeFirst()
  return deleted !== undefined
}

const credentialColumns = [
  'credential.username',
  'credential.role',
  'credential.application_id as applicationId',
  'credential.is_disabled as isDisabled',
  'credential.expires_at as expiresAt',
] as const
