// Stores the credentials of callers of the cloud API in the tables credential and credential_password.
import { sql } from 'kysely'
import { toList } from '../database/columns.ts'
import { type Db, type Tx, writesRow } from '../database/database.ts'
import type { Right, Role } from '../database/schema.ts'

interface CredentialRow {
  readonly username: string
  readonly role: Role
  readonly applicationId: string | null
  readonly isDisabled: boolean
  readonly expiresAt: Date | null
  /** Addresses and ranges from which the credential may be used; empty: any. */
  readonly allowedAddresses: readonly string[]
  /** SHA-256 fingerprints of client certificates that authenticate the credential, 64 hexadecimal digits each. */
  readonly certificates: readonly string[]
  /** In alphabetical order. */
  readonly rights: readonly Right[]
}

export interface PasswordRow {
  readonly passwordId: string
  readonly scheme: 'generated' | 'chosen'
  readonly passwordHash: Buffer
  readonly expiresAt: Date | null
}

export interface CredentialWithPasswords extends CredentialRow {
  /** 16 bytes, used for all passwords of the credential. */
  readonly salt: Buffer
  /** MAC over all members; null in a row that never had one. */
  readonly mac: Buffer | null
  readonly passwords: readonly PasswordRow[]
}

/** Finds a credential with its passwords, newest first. */
export async function findCredential(db: Db, username: string): Promise<CredentialWithPasswords | undefined> {
  const rows = await db
    .selectFrom('credential')
    .leftJoin('credential_password as p', 'p.username', 'credential.username')
    .select([
      ...credentialColumns,
      'credential.salt',
      'credential.mac',
      'p.credential_password_id as passwordId',
      'p.scheme',
      'p.password_hash as passwordHash',
      'p.expires_at as passwordExpiresAt',
    ])
    .where('credential.username', '=', username)
    .orderBy('p.created_at', 'desc')
    .execute()
  const [first] = rows
  if (first === undefined) return undefined
  const passwords = rows.flatMap(({ passwordId, scheme, passwordHash, passwordExpiresAt }) =>
    passwordId === null || scheme === null || passwordHash === null
      ? []
      : [{ passwordId, scheme, passwordHash, expiresAt: passwordExpiresAt }],
  )
  const { username: name, role, applicationId, isDisabled, expiresAt, salt, mac } = first
  const allowedAddresses = toList(first.allowedAddresses)
  const certificates = toList(first.certificates)
  const rights = toRights(first.rights)
  const row = { username: name, role, applicationId, isDisabled, expiresAt, allowedAddresses, certificates, rights }
  return { ...row, salt, mac, passwords }
}

/** Lists all credentials in order of name. */
export async function listCredentials(db: Db): Promise<CredentialRow[]> {
  const rows = await db.selectFrom('credential').select(credentialColumns).orderBy('credential.username').execute()
  return rows.map((row) => ({
    ...row,
    allowedAddresses: toList(row.allowedAddresses),
    certificates: toList(row.certificates),
    rights: toRights(row.rights),
  }))
}

/** Lists the names of the credentials that a client certificate authenticates. */
export async function listCertificateHolders(db: Db, fingerprint: string): Promise<string[]> {
  const rows = await db
    .selectFrom('credential')
    .select('username')
    .where(sql<boolean>`${fingerprint} = any(string_to_array(certificates, ','))`)
    .orderBy('username')
    .execute()
  return rows.map(({ username }) => username)
}

/** True when there is an administrator. */
export async function hasAdmin(db: Db): Promise<boolean> {
  const row = await db.selectFrom('credential').select('username').where('role', '=', 'admin').limit(1).executeTakeFirst()
  return row !== undefined
}

export interface NewCredential extends Pick<CredentialRow, 'username' | 'role' | 'applicationId' | 'expiresAt'> {
  /** 16 bytes. */
  readonly salt: Uint8Array
  readonly allowedAddresses?: readonly string[]
  readonly createdAt: Date
}

/** Inserts a credential; it has no password yet. False when the name is taken. */
export async function insertCredential(tx: Tx, credential: NewCredential): Promise<boolean> {
  const inserted = await tx
    .insertInto('credential')
    .values({
      username: credential.username,
      role: credential.role,
      application_id: credential.applicationId,
      salt: credential.salt,
      expires_at: credential.expiresAt,
      allowed_addresses: (credential.allowedAddresses ?? []).join(','),
      created_at: credential.createdAt,
    })
    .onConflict((conflict) => conflict.column('username').doNothing())
    .returning('username')
    .executeTakeFirst()
  return inserted !== undefined
}

/** A password to store; `passwordHash` is keyed. */
export interface NewPassword {
  /** The salt of the credential for which the password was hashed. */
  readonly salt: Uint8Array
  readonly passwordId: string
  readonly scheme: 'generated' | 'chosen'
  readonly passwordHash: Uint8Array
  readonly createdAt: Date
}

/**
 * Stores a new password. Earlier ones expire at `previousExpiresAt`, and only the latest of them is kept; when that is null, all are deleted. False
 * when the credential is gone, or was deleted and made anew. The row is locked first, so that two resets at once leave one password.
 */
export async function replacePassword(
  tx: Tx,
  username: string,
  password: NewPassword,
  previousExpiresAt: Date | null,
): Promise<boolean> {
  const locked = await tx
    .selectFrom('credential')
    .select('username')
    .where('username', '=', username)
    .where('salt', '=', Buffer.from(password.salt))
    .forUpdate()
    .executeTakeFirst()
  if (locked === undefined) return false
  await sql`
    delete from credential_password where username = ${username} and (${previousExpiresAt}::timestamptz is null or
      credential_password_id <> (
        select credential_password_id from credential_password where username = ${username} order by created_at desc limit 1))`.execute(
    tx,
  )
  await sql`
    update credential_password set expires_at = least(coalesce(expires_at, ${previousExpiresAt}), ${previousExpiresAt}::timestamptz)
    where username = ${username}`.execute(tx)
  await tx
    .insertInto('credential_password')
    .values({
      credential_password_id: password.passwordId,
      username,
      scheme: password.scheme,
      password_hash: password.passwordHash,
      created_at: password.createdAt,
    })
    .execute()
  return true
}

/** Locks a credential until the end of the transaction. */
export async function lockCredential(tx: Tx, username: string): Promise<void> {
  await tx.selectFrom('credential').select('username').where('username', '=', username).forUpdate().execute()
}

/** Replaces the given lists of a credential; false when there is no credential of that name. */
export async function updateLists(
  tx: Tx,
  username: string,
  { allowedAddresses, certificates, rights }: Partial<Pick<CredentialRow, 'allowedAddresses' | 'certificates' | 'rights'>>,
): Promise<boolean> {
  const lists = {
    ...(allowedAddresses && { allowed_addresses: allowedAddresses.join(',') }),
    ...(certificates && { certificates: certificates.join(',') }),
    ...(rights && { rights: rights.toSorted().join(',') }),
  }
  const { numUpdatedRows } = await tx
    .updateTable('credential')
    .set(lists)
    .where('username', '=', username)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** Stores the MAC over a credential and its passwords, in the transaction that changed them. */
export async function storeCredentialMac(tx: Tx, username: string, mac: Uint8Array): Promise<void> {
  await tx.updateTable('credential').set({ mac }).where('username', '=', username).execute()
}

/** Deletes a credential and its passwords; false when there was none. */
export const deleteCredential = (db: Db, username: string): Promise<boolean> =>
  writesRow(db, sql`delete from credential where username = ${username}`)

const credentialColumns = [
  'credential.username',
  'credential.role',
  'credential.application_id as applicationId',
  'credential.is_disabled as isDisabled',
  'credential.expires_at as expiresAt',
  'credential.allowed_addresses as allowedAddresses',
  'credential.certificates',
  'credential.rights',
] as const

/** Splits the stored rights. Other texts were written by another program, which the check of the MAC detects. */
const toRights = (text: string): readonly Right[] => toList(text) as readonly Right[]
