// Makes and checks the MAC over a credential and its passwords. A credential that somebody changed by hand in the database is refused
// (SECURITY-MODEL).
import type { KeyObject } from 'node:crypto'
import {
  type CredentialWithPasswords,
  findCredential,
  listCredentials,
  lockCredential,
  storeCredentialMac,
} from '../../storage/credential/credentials.ts'
import type { Tx } from '../../storage/database/database.ts'
import { authenticateRow, type DecidingRow, isRowAuthentic } from '../secrets/row-mac.ts'

/** Whether a credential and its passwords are unchanged since pawl wrote them. */
export const isCredentialAuthentic = (key: KeyObject, credential: CredentialWithPasswords): boolean =>
  isRowAuthentic(key, decidingRow(credential), credential.mac)

/** Writes the MAC over the present row of a credential. The transaction has changed or locked the row. */
export async function sealCredential(tx: Tx, key: KeyObject, username: string): Promise<void> {
  const credential = await findCredential(tx, username)
  if (credential !== undefined) await storeCredentialMac(tx, username, authenticateRow(key, decidingRow(credential)))
}

/** Writes the MACs of all credentials, which are older than the key of the MACs. Returns their names with roles. */
export async function sealAllCredentials(tx: Tx, key: KeyObject): Promise<string[]> {
  const credentials = await listCredentials(tx)
  for (const { username } of credentials) {
    await lockCredential(tx, username)
    await sealCredential(tx, key, username)
  }
  return credentials.map(({ username, role }) => `${username} (${role})`)
}

function decidingRow({
  username,
  role,
  applicationId,
  isDisabled,
  expiresAt,
  allowedAddresses,
  certificates,
  rights,
  salt,
  passwords,
}: CredentialWithPasswords): DecidingRow {
  const row = [username, role, applicationId, String(isDisabled), timeOf(expiresAt), salt.toString('hex')]
  const rows = passwords
    .toSorted((a, b) => (a.passwordId < b.passwordId ? -1 : 1))
    .flatMap((password) => [
      password.passwordId,
      password.scheme,
      password.passwordHash.toString('hex'),
      timeOf(password.expiresAt),
    ])
  // Without addresses the MAC is that of earlier versions. With addresses two fields follow. No other row has as many fields: a row has six, and
  // four for each password.
  const addresses = allowedAddresses.length === 0 ? [] : ['allowed addresses', allowedAddresses.join(',')]
  // With certificates three fields follow, a number that no other row has.
  const bound =
    certificates.length === 0 ? addresses : ['addresses and certificates', allowedAddresses.join(','), certificates.join(',')]
  // With rights five fields follow, because four fields would look like one more password.
  const entitled = ['addresses', allowedAddresses.join(','), 'certificates and rights', certificates.join(','), rights.join(',')]
  return { table: 'credential', fields: [...row, ...rows, ...(rights.length === 0 ? bound : entitled)] }
}

/** Milliseconds since 1970 as text. */
const timeOf = (time: Date | null): string | null => (time === null ? null : String(time.getTime()))
