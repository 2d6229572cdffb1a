// Credentials of the cloud API (cloud §2): HTTP Basic users with a role and, for the bank's systems, one application.
import type { KeyObject } from 'node:crypto'
import { hmac, importHmacKey } from '../../crypto/hmac.ts'
import { isInRanges } from '../../lib/address-ranges.ts'
import { toBase64, toBase64Url } from '../../lib/base64.ts'
import { concat, equalPublic, u32, utf8 } from '../../lib/bytes.ts'
import { notFound, PawlError } from '../../lib/errors.ts'
import type { Events } from '../../lib/events.ts'
import { createMemory } from '../../lib/memory.ts'
import type { Platform } from '../../lib/platform.ts'
import { isWeakPassword } from '../../lib/weak-password.ts'
import {
  type CredentialWithPasswords,
  findCredential,
  insertCredential,
  listCertificateHolders,
  lockCredential,
  type NewPassword,
  type PasswordRow,
  replacePassword,
  updateAllowedAddresses,
  updateCertificates,
} from '../../storage/credentials.ts'
import type { Pool, Tx } from '../../storage/database.ts'
import type { Role } from '../../storage/schema.ts'
import { type CertificateLogin, createCertificateLogin } from './client-certificate.ts'
import { createPasswords, usablePasswords } from './password.ts'
import { isCredentialAuthentic, sealCredential } from './mac.ts'
import type { SharedFailures } from '../limits/shared-failures.ts'
import { createLoginGate, type Login } from './login-gate.ts'

export interface CredentialParts {
  readonly db: Pool
  readonly platform: Platform
  readonly events: Events
  readonly installationKeys: { readonly credentialHash: KeyObject; readonly credentialMac: KeyObject }
  readonly settings: { readonly credentialFailuresPerMinute: number }
  /** Of all processes on the database, where there may be several. */
  readonly sharedFailures?: SharedFailures | undefined
}

/** A caller whose password was right. */
export interface Caller {
  readonly username: string
  readonly role: Role
  readonly applicationId: string | null
}

/** A caller, and the password that was shown. */
export interface VerifiedCaller extends Caller {
  readonly passwordId: string
  /** Empty: any. */
  readonly allowedAddresses: readonly string[]
}

export interface Credentials {
  /**
   * Checks the password that a caller shows. Throws CREDENTIALS_INVALID, or TOO_MANY_REQUESTS while this user name and source have to wait
   * after too many failures: the password is not looked at then, so that a right one does not pass either.
   */
  readonly verify: (login: Login, password: string) => Promise<VerifiedCaller>
  /** Whether a password is one of the user's, without counting or logging. */
  readonly isPassword: (username: string, password: string) => Promise<boolean>
  /**
   * Hashes a password for a user who is there, or for one to be created; a missing password is generated. Takes long for a chosen one, so
   * it is done before a transaction begins. Throws REQUEST_INVALID for one that is easily guessed.
   */
  readonly prepare: (chosen: string | undefined, username?: string) => Promise<PreparedPassword>
  /** Creates a user. Throws ADMINISTRATION_REFUSED when the name is taken. */
  readonly create: (tx: Tx, user: NewUser, prepared: PreparedPassword) => Promise<void>
  /** Replaces the password, which stays valid for `keepPreviousSeconds` more. Throws ADMINISTRATION_REFUSED when there is no such user. */
  readonly reset: (tx: Tx, username: string, prepared: PreparedPassword, keepPreviousSeconds: number) => Promise<void>
  /** Says where a user may come from; nothing: from anywhere. Throws ADMINISTRATION_REFUSED when there is no such user. */
  readonly restrict: (tx: Tx, username: string, allowedAddresses: readonly string[]) => Promise<void>
  /**
   * Says which client certificates stand for a user, by their fingerprints. Throws ADMINISTRATION_REFUSED when there is no such user, or when
   * one stands for another.
   */
  readonly assignCertificates: (tx: Tx, username: string, certificates: readonly string[]) => Promise<void>
  /** Whom a client certificate stands for. Throws CREDENTIALS_INVALID. */
  readonly verifyCertificate: CertificateLogin['verify']
  /** Makes this process forget what it has verified; others follow within 5 s. */
  readonly forget: () => void
}

export interface NewUser {
  readonly username: string
  readonly role: Role
  readonly applicationId: string | null
  readonly expiresAt: Date | null
  readonly allowedAddresses?: readonly string[]
}

/** A password and what is stored of it. */
export interface PreparedPassword {
  readonly password: string
  readonly row: NewPassword
}

/** The credentials of one installation. */
export function createCredentials(parts: CredentialParts): Credentials {
  const { db, platform, installationKeys } = parts
  const passwords = createPasswords(installationKeys.credentialHash)
  const gate = createLoginGate(
    parts.events,
    () => platform.monotonic(),
    parts.settings.credentialFailuresPerMinute,
    parts.sharedFailures,
  )
  const cacheKey = importHmacKey(platform.randomBytes(32))
  const verified = createMemory<VerifiedCaller>({ max: VERIFIED_MAX, ttl: CACHE_MS, clock: () => platform.now() })
  const rightRows = createMemory<PasswordRow>({ max: VERIFIED_MAX })
  let generation = 0

  /** A credential that was altered in the database counts as missing. */
  const findAuthentic = async (username: string): Promise<CredentialWithPasswords | undefined> => {
    const credential = await findCredential(db, username)
    if (credential === undefined || isCredentialAuthentic(installationKeys.credentialMac, credential)) return credential
    parts.events.credentialAltered({ username })
    return undefined
  }

  const verify: Credentials['verify'] = async (login, password) => {
    const { username } = login
    const now = platform.now()
    gate.enter(login, platform.monotonic())
    const key = toBase64(hmac(cacheKey, concat(u32(username.length), utf8(username), utf8(password))))
    const known = verified.get(key)
    if (known && isAdmitted(known, login)) {
      gate.pass(login)
      return known
    }
    const generationRead = generation
    const credential = await findAuthentic(username)
    // A password that was right stays right as long as its row is there, so scrypt is not computed again.
    // From an address that is not admitted a right password takes the steps of a wrong one, the hash among them.
    const isHere = credential !== undefined && isAdmitted(credential, login)
    const right = isHere ? rightRows.get(key) : undefined
    const remembered = right && usablePasswords(credential, now).find((row) => equalPublic(row.passwordHash, right.passwordHash))
    const row =
      remembered ??
      (await gate.check(login, key, platform.monotonic(), (lane) => passwords.findMatch(credential, password, now, lane)))
    if (credential === undefined || row === undefined || !isHere)
      throw gate.fail(login, platform.monotonic(), credential !== undefined)
    gate.pass(login)
    const { role, applicationId, expiresAt, allowedAddresses } = credential
    const caller = { username, role, applicationId, passwordId: row.passwordId, allowedAddresses }
    const ends = [expiresAt, row.expiresAt].map((end) => end?.getTime() ?? Number.POSITIVE_INFINITY)
    // A credential that was read before the memory was cleared may be out of date.
    if (generationRead === generation) {
      verified.set(key, caller, { from: now, to: Math.min(now + CACHE_MS, ...ends) })
      rightRows.set(key, row)
    }
    return caller
  }

  const certificateLogin = createCertificateLogin({ ...parts, findAuthentic, isAdmitted, rememberMs: CACHE_MS })

  const prepare: Credentials['prepare'] = async (chosen, username) => {
    if (chosen !== undefined && isWeakPassword(chosen)) throw passwordTooWeak()
    const existing = username === undefined ? undefined : await findCredential(db, username)
    const salt = existing?.salt ?? platform.randomBytes(16)
    const password = chosen ?? toBase64Url(platform.randomBytes(32))
    const scheme = chosen === undefined ? 'generated' : 'chosen'
    const passwordHash = await passwords.hash(scheme, password, salt, gate.ownLane)
    return { password, row: { passwordId: platform.uuid(), salt, scheme, passwordHash, createdAt: new Date(platform.now()) } }
  }

  const create: Credentials['create'] = async (tx, user, { row }) => {
    if (!(await insertCredential(tx, { ...user, salt: row.salt, createdAt: row.createdAt })))
      throw new PawlError('ADMINISTRATION_REFUSED', { detail: `user ${user.username} exists` })
    await replacePassword(tx, user.username, row, null)
    await sealCredential(tx, installationKeys.credentialMac, user.username)
  }

  /** The MAC that follows would also cover what somebody else wrote into the row. */
  const lockAuthentic = async (tx: Tx, username: string): Promise<void> => {
    await lockCredential(tx, username)
    const before = await findCredential(tx, username)
    if (before !== undefined && !isCredentialAuthentic(installationKeys.credentialMac, before)) throw altered(username)
  }

  const restrict: Credentials['restrict'] = async (tx, username, allowedAddresses) => {
    await lockAuthentic(tx, username)
    if (!(await updateAllowedAddresses(tx, username, allowedAddresses))) throw notFound(`user ${username}`)
    await sealCredential(tx, installationKeys.credentialMac, username)
  }

  const assignCertificates: Credentials['assignCertificates'] = async (tx, username, certificates) => {
    await lockAuthentic(tx, username)
    for (const fingerprint of certificates) {
      const holder = (await listCertificateHolders(tx, fingerprint)).find((name) => name !== username)
      if (holder !== undefined) throw certificateTaken(fingerprint, holder)
    }
    if (!(await updateCertificates(tx, username, certificates))) throw notFound(`user ${username}`)
    await sealCredential(tx, installationKeys.credentialMac, username)
  }

  const reset: Credentials['reset'] = async (tx, username, { row }, keepPreviousSeconds) => {
    const previousExpiresAt = keepPreviousSeconds > 0 ? new Date(platform.now() + keepPreviousSeconds * 1000) : null
    await lockAuthentic(tx, username)
    if (!(await replacePassword(tx, username, row, previousExpiresAt))) throw notFound(`user ${username}`)
    await sealCredential(tx, installationKeys.credentialMac, username)
  }

  const isPassword: Credentials['isPassword'] = async (username, password) =>
    (await passwords.findMatch(await findAuthentic(username), password, platform.now(), gate.ownLane)) !== undefined

  const forget: Credentials['forget'] = () => {
    generation += 1
    verified.clear()
    rightRows.clear()
    certificateLogin.forget()
  }

  const { verify: verifyCertificate } = certificateLogin
  return { verify, verifyCertificate, isPassword, prepare, create, reset, restrict, assignCertificates, forget }
}

/** Whether a credential may be used from where the caller is. */
export const isAdmitted = (
  { allowedAddresses }: Pick<VerifiedCaller, 'allowedAddresses'>,
  { source }: Pick<Login, 'source'>,
): boolean => allowedAddresses.length === 0 || isInRanges(allowedAddresses, source)

const altered = (username: string): PawlError =>
  new PawlError('ADMINISTRATION_REFUSED', {
    detail: `user ${username} was altered in the database`,
    violations: [{ fieldName: 'name', hint: 'was altered in the database, remove it and create it anew' }],
  })

const certificateTaken = (fingerprint: string, holder: string): PawlError =>
  new PawlError('ADMINISTRATION_REFUSED', {
    detail: `a certificate stands for ${holder}`,
    violations: [{ fieldName: 'certificates', invalidValue: fingerprint, hint: `stands for ${holder}` }],
  })

const passwordTooWeak = (): PawlError =>
  new PawlError('REQUEST_INVALID', {
    detail: 'an easily guessed password',
    violations: [{ fieldName: 'password', hint: 'must not be easily guessed' }],
  })

// A credential that another process deletes or changes is noticed within five seconds, the request that read it included.
const CACHE_MS = 4_000
const VERIFIED_MAX = 1_000
