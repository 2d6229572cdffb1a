// Credentials of the cloud API (cloud §2): HTTP Basic users with a role and, for the bank's systems, one application.
import type { KeyObject } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { hmac, importHmacKey } from '../crypto/hmac.ts'
import { toBase64, toBase64Url } from '../lib/base64.ts'
import { concat, equalPublic, u32, utf8 } from '../lib/bytes.ts'
import { notFound, PawlError, StartError } from '../lib/errors.ts'
import type { Events } from '../lib/events.ts'
import type { Platform } from '../lib/platform.ts'
import {
  findCredential,
  hasAdmin,
  insertCredential,
  type NewPassword,
  type PasswordRow,
  replacePassword,
} from '../storage/credentials.ts'
import { type Db, inTransaction } from '../storage/database.ts'
import type { Role } from '../storage/schema.ts'
import { createPasswords, usablePasswords } from './password.ts'
import { createRateLimit } from './rate-limit.ts'

export interface CredentialParts {
  readonly db: Db
  readonly platform: Platform
  readonly events: Events
  readonly installationKeys: { readonly credentialHash: KeyObject }
  readonly settings: { readonly credentialFailuresPerMinute: number }
}

/** A caller whose password was right. */
export interface Caller {
  readonly username: string
  readonly role: Role
  readonly applicationId: string | null
}

export interface Credentials {
  /**
   * Checks a user name and password from `source` (the address of the caller). Throws CREDENTIALS_INVALID, or TOO_MANY_REQUESTS
   * when this pair has failed too often within a minute; right credentials always pass.
   */
  readonly verify: (username: string, password: string, source: string) => Promise<Caller>
  /** Whether a password is one of the user's, without counting or logging. */
  readonly isPassword: (username: string, password: string) => Promise<boolean>
  /**
   * Hashes a password for a user who is there, or for one to be created; a missing password is generated. Takes long for a chosen one, so
   * it is done before a transaction begins.
   */
  readonly prepare: (chosen: string | undefined, username?: string) => Promise<PreparedPassword>
  /** Creates a user. Throws ADMINISTRATION_REFUSED when the name is taken. */
  readonly create: (db: Db, user: NewUser, prepared: PreparedPassword) => Promise<void>
  /** Replaces the password, which stays valid for `keepPreviousSeconds` more. Throws ADMINISTRATION_REFUSED when there is no such user. */
  readonly reset: (db: Db, username: string, prepared: PreparedPassword, keepPreviousSeconds: number) => Promise<void>
  /** Makes this process forget what it has verified; others follow within 30 s. */
  readonly forget: () => void
}

export interface NewUser {
  readonly username: string
  readonly role: Role
  readonly applicationId: string | null
  readonly expiresAt: Date | null
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
  const throttle = createThrottle(parts)
  const cacheKey = importHmacKey(platform.randomBytes(32))
  const verified = new LRUCache<string, Verified>({ max: 1_000 })
  let generation = 0

  const verify: Credentials['verify'] = async (username, password, source) => {
    const now = platform.now()
    const key = toBase64(hmac(cacheKey, concat(u32(username.length), utf8(username), utf8(password))))
    const known = verified.get(key)
    if (known && known.until > now) return known.caller
    const generationRead = generation
    const credential = await findCredential(db, username)
    // A password that was right before is so as long as its row is there: no second scrypt.
    const remembered =
      known && usablePasswords(credential, now).find((row) => equalPublic(row.passwordHash, known.row.passwordHash))
    const row = remembered ?? (await passwords.findMatch(credential, password, now, source))
    if (credential === undefined || row === undefined) throw throttle.count(username, source, now, credential !== undefined)
    const { role, applicationId, expiresAt } = credential
    const caller = { username, role, applicationId }
    const ends = [expiresAt, row.expiresAt].map((end) => end?.getTime() ?? Number.POSITIVE_INFINITY)
    // What was read before something was forgotten may be out of date.
    if (generationRead === generation) verified.set(key, { caller, row, until: Math.min(now + CACHE_MS, ...ends) })
    return caller
  }

  const prepare: Credentials['prepare'] = async (chosen, username) => {
    const existing = username === undefined ? undefined : await findCredential(db, username)
    const salt = existing?.salt ?? platform.randomBytes(16)
    const password = chosen ?? toBase64Url(platform.randomBytes(32))
    const scheme = chosen === undefined ? 'generated' : 'chosen'
    const passwordHash = await passwords.hash(scheme, password, salt)
    return { password, row: { passwordId: platform.uuid(), salt, scheme, passwordHash, createdAt: new Date(platform.now()) } }
  }

  const create: Credentials['create'] = (target, user, { row }) =>
    inTransaction(target, async (tx) => {
      if (!(await insertCredential(tx, { ...user, salt: row.salt, createdAt: row.createdAt })))
        throw new PawlError('ADMINISTRATION_REFUSED', { detail: `user ${user.username} exists` })
      await replacePassword(tx, user.username, row, null)
    })

  const reset: Credentials['reset'] = async (target, username, { row }, keepPreviousSeconds) => {
    const previousExpiresAt = keepPreviousSeconds > 0 ? new Date(platform.now() + keepPreviousSeconds * 1000) : null
    const isReplaced = await inTransaction(target, (tx) => replacePassword(tx, username, row, previousExpiresAt))
    if (!isReplaced) throw notFound(`user ${username}`)
  }

  const isPassword: Credentials['isPassword'] = async (username, password) =>
    (await passwords.findMatch(await findCredential(db, username), password, platform.now(), 'start')) !== undefined

  const forget: Credentials['forget'] = () => {
    generation += 1
    verified.clear()
  }

  return { verify, isPassword, prepare, create, reset, forget }
}

interface Verified {
  readonly caller: Caller
  readonly row: PasswordRow
  readonly until: number
}

/** Counts failures per user name and source within a minute. */
function createThrottle({ settings, events }: CredentialParts) {
  const limit = createRateLimit(settings.credentialFailuresPerMinute)
  return {
    /** Counts one failure and returns how it is answered. */
    count: (username: string, source: string, now: number, isKnown: boolean): PawlError => {
      const reason = isKnown ? 'wrong password, disabled or expired' : 'unknown user'
      events.credentialRefused({ username: isKnown ? username : undefined, source, reason })
      return limit.count(`${source}\0${username.slice(0, 255)}`, now) ?? new PawlError('CREDENTIALS_INVALID')
    },
  }
}

/**
 * The administrator of the first start, from the settings or with a generated password, which is returned. On a database that has this
 * admin a differing configured password replaces the old one.
 */
export async function bootstrapAdmin(
  parts: CredentialParts,
  credentials: Credentials,
  adminUser: string,
  adminPassword: string | undefined,
): Promise<string | undefined> {
  const existing = await findCredential(parts.db, adminUser)
  if (existing === undefined) {
    if (adminPassword === undefined && (await hasAdmin(parts.db))) return undefined
    try {
      const prepared = await credentials.prepare(adminPassword)
      await credentials.create(parts.db, { username: adminUser, role: 'admin', applicationId: null, expiresAt: null }, prepared)
      return adminPassword === undefined ? prepared.password : undefined
    } catch (error) {
      // Another process of the same first start was faster; its generated password is the one that was shown.
      if (error instanceof PawlError && error.code === 'ADMINISTRATION_REFUSED') return undefined
      throw error
    }
  }
  if (existing.role !== 'admin') throw new StartError(`PAWL_ADMIN_USER names ${adminUser}, who is no administrator`)
  if (adminPassword === undefined || (await credentials.isPassword(adminUser, adminPassword))) return undefined
  await credentials.reset(parts.db, adminUser, await credentials.prepare(adminPassword, adminUser), 0)
  parts.events.adminPasswordReplaced({ username: adminUser })
  return undefined
}

const CACHE_MS = 30_000
