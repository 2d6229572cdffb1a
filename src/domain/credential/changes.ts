// Changes credentials, each in the caller's transaction, and renews the MAC over the row.
import type { KeyObject } from 'node:crypto'
import { administrationRefused, existsAlready, notFound, PawlError } from '../../lib/errors.ts'
import type { Platform } from '../../lib/platform.ts'
import {
  findCredential,
  insertCredential,
  listCertificateHolders,
  lockCredential,
  type NewCredential,
  type NewPassword,
  replacePassword,
  updateLists,
} from '../../storage/credential/credentials.ts'
import type { Tx } from '../../storage/database/database.ts'
import type { Right } from '../../storage/database/schema.ts'
import { isCredentialAuthentic, sealCredential } from './mac.ts'

/** A password and what is stored of it. */
export interface PreparedPassword {
  readonly password: string
  readonly row: NewPassword
}

export interface CredentialChanges {
  /** Creates a user. Throws ADMINISTRATION_REFUSED when the name is taken. */
  readonly create: (tx: Tx, user: Omit<NewCredential, 'salt' | 'createdAt'>, prepared: PreparedPassword) => Promise<void>
  /** Replaces the password, which stays valid for `keepPreviousSeconds` more. Throws ADMINISTRATION_REFUSED when there is no such user. */
  readonly reset: (tx: Tx, username: string, prepared: PreparedPassword, keepPreviousSeconds: number) => Promise<void>
  /** Sets the addresses from which a user may call; an empty list means any. Throws ADMINISTRATION_REFUSED when there is no such user. */
  readonly restrict: (tx: Tx, username: string, allowedAddresses: readonly string[]) => Promise<void>
  /**
   * Sets the client certificates of a user, by their fingerprints. Throws ADMINISTRATION_REFUSED when there is no such user, or when a
   * certificate is another user's.
   */
  readonly assignCertificates: (tx: Tx, username: string, certificates: readonly string[]) => Promise<void>
  /** Sets the rights that a user has beside the role. Throws ADMINISTRATION_REFUSED when there is no such user. */
  readonly entitle: (tx: Tx, username: string, rights: readonly Right[]) => Promise<void>
}

/** `macKey` is the key of the MACs over credentials. */
export function createCredentialChanges(macKey: KeyObject, platform: Pick<Platform, 'now'>): CredentialChanges {
  /**
   * Locks a credential, changes it, and renews its MAC. The lock matters, because the MAC would also cover values that somebody else has
   * written into the row.
   */
  const change = async (tx: Tx, username: string, write: () => Promise<boolean>): Promise<void> => {
    await lockCredential(tx, username)
    const before = await findCredential(tx, username)
    if (before !== undefined && !isCredentialAuthentic(macKey, before)) throw altered(username)
    if (!(await write())) throw notFound('user', username)
    await sealCredential(tx, macKey, username)
  }

  return {
    create: async (tx, user, { row }) => {
      if (!(await insertCredential(tx, { ...user, salt: row.salt, createdAt: row.createdAt })))
        throw existsAlready('user', user.username)
      await replacePassword(tx, user.username, row, null)
      await sealCredential(tx, macKey, user.username)
    },
    reset: (tx, username, { row }, keepPreviousSeconds) => {
      const previousExpiresAt = keepPreviousSeconds > 0 ? new Date(platform.now() + keepPreviousSeconds * 1000) : null
      return change(tx, username, () => replacePassword(tx, username, row, previousExpiresAt))
    },
    restrict: (tx, username, allowedAddresses) => change(tx, username, () => updateLists(tx, username, { allowedAddresses })),
    assignCertificates: (tx, username, certificates) =>
      change(tx, username, async () => {
        for (const fingerprint of certificates) {
          const holder = (await listCertificateHolders(tx, fingerprint)).find((name) => name !== username)
          if (holder !== undefined) throw certificateTaken(fingerprint, holder)
        }
        return updateLists(tx, username, { certificates })
      }),
    entitle: (tx, username, rights) => change(tx, username, () => updateLists(tx, username, { rights })),
  }
}

const altered = (username: string): PawlError =>
  administrationRefused('name', `user ${username} was altered in the database, remove it and create it anew`)

const certificateTaken = (fingerprint: string, holder: string): PawlError =>
  new PawlError('ADMINISTRATION_REFUSED', {
    detail: `a certificate stands for ${holder}`,
    violations: [{ fieldName: 'certificates', invalidValue: fingerprint, hint: `stands for ${holder}` }],
  })
