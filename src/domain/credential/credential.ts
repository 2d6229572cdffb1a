// Verifies and changes credentials of the cloud API (cloud §2): HTTP Basic users with a role and, for the bank's systems, one application.
import type { KeyObject } from 'node:crypto'
import { toBase64Url } from '../../lib/base64.ts'
import { administrationRefused, existsAlready, notFound, PawlError, refused, requestRefused } from '../../lib/errors.ts'
import { createMemory } from '../../lib/memory.ts'
import type { Platform } from '../../lib/platform.ts'
import { isWeakPassword } from '../../lib/weak-password.ts'
import type { Events } from '../../log/events.ts'
import {
  type CredentialWithPasswords,
  findCredential,
  insertCredential,
  listCertificateHolders,
  lockCredential,
  type NewCredential,
  type NewPassword,
  replacePassword,
  updateLists,
} from '../../storage/credential/credentials.ts'
import type { Pool, Tx } from '../../storage/database/database.ts'
import type { Right, Role } from '../../storage/database/schema.ts'
import type { SharedFailures } from '../limits/shared-failures.ts'
import type { DomainParts } from '../secrets/secrets.ts'
import { createLoginGate, type Login } from './login-gate.ts'
import { isCredentialAuthentic, sealCredential } from './mac.ts'
import { createPasswordLogin, type FindAuthentic, isAdmitted, REMEMBERED_MS, type VerifiedCaller } from './password-login.ts'
import { createPasswords, hasEnded } from './password.ts'

export interface CredentialParts {
  readonly db: Pool
  readonly platform: Platform
  readonly events: Events
  readonly installationKeys: { readonly credentialHash: KeyObject; readonly credentialMac: KeyObject }
  readonly settings: { readonly credentialFailuresPerMinute: number }
  /** The failure counts of all processes; undefined where only one process uses the database. */
  readonly sharedFailures?: SharedFailures | undefined
}

/** A caller who has proved who they are. */
export interface Caller {
  readonly username: string
  readonly role: Role
  readonly applicationId: string | null
  /** The rights of the credential; none for a caller with an access token, which names no credential. */
  readonly rights: readonly Right[]
}

export interface Credentials extends CredentialChanges {
  /**
   * Checks the password of a caller. Throws CREDENTIALS_INVALID. Throws TOO_MANY_REQUESTS while this user name and source have to wait after too
   * many failures; even a right password is then refused unchecked.
   */
  readonly verify: (login: Login, password: string) => Promise<VerifiedCaller>
  /** Whether a password is one of the user's. It counts and logs nothing. */
  readonly isPassword: (username: string, password: string) => Promise<boolean>
  /**
   * Hashes a password for an existing or new user; without a password it generates one. Hashing a chosen password takes long, so call it before
   * a transaction. Throws REQUEST_INVALID for a password that is easily guessed.
   */
  readonly prepare: (chosen: string | undefined, username?: string) => Promise<PreparedPassword>
  /** Finds the caller of a client certificate. Throws CREDENTIALS_INVALID. */
  readonly verifyCertificate: CertificateLogin['verify']
  /** Makes this process forget the credentials that it remembers; other processes follow within 5 s. */
  readonly forget: () => void
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
  /** A credential that was altered in the database counts as missing. */
  const findAuthentic = async (username: string): Promise<CredentialWithPasswords | undefined> => {
    const credential = await findCredential(db, username)
    if (credential === undefined || isCredentialAuthentic(installationKeys.credentialMac, credential)) return credential
    parts.events.credentialAltered({ username })
    return undefined
  }

  const login = { ...parts, findAuthentic }
  const passwordLogin = createPasswordLogin(login, gate, passwords)
  const certificateLogin = createCertificateLogin(login)

  const prepare: Credentials['prepare'] = async (chosen, username) => {
    if (chosen !== undefined && isWeakPassword(chosen)) throw requestRefused('password', 'must not be easily guessed')
    const existing = username === undefined ? undefined : await findCredential(db, username)
    const salt = existing?.salt ?? platform.randomBytes(16)
    const password = chosen ?? toBase64Url(platform.randomBytes(32))
    const scheme = chosen === undefined ? 'generated' : 'chosen'
    const passwordHash = await passwords.hash(scheme, password, salt, gate.ownLane)
    return { password, row: { passwordId: platform.uuid(), salt, scheme, passwordHash, createdAt: new Date(platform.now()) } }
  }

  return {
    ...createCredentialChanges(installationKeys.credentialMac, platform),
    verify: passwordLogin.verify,
    verifyCertificate: certificateLogin.verify,
    isPassword: async (username, password) =>
      (await passwords.findMatch(await findAuthentic(username), password, platform.now(), gate.ownLane)) !== undefined,
    prepare,
    forget: () => {
      passwordLogin.forget()
      certificateLogin.forget()
    },
  }
}

/** The caller whom a client certificate identifies. */
type CertificateHolder = Omit<VerifiedCaller, 'passwordId'>

interface CertificateLogin {
  /**
   * Finds the caller of a certificate. `fingerprint` is its SHA-256, 64 hexadecimal digits. Throws CREDENTIALS_INVALID when no credential has
   * it, or may not be used from this address.
   */
  readonly verify: (fingerprint: string, source: string) => Promise<CertificateHolder>
  readonly forget: () => void
}

function createCertificateLogin({
  db,
  platform,
  events,
  findAuthentic,
}: Omit<DomainParts, 'recordKeys'> & { readonly findAuthentic: FindAuthentic }): CertificateLogin {
  const known = createMemory<CertificateHolder>({ max: KNOWN_MAX, ttl: REMEMBERED_MS, clock: () => platform.now() })

  const find = async (fingerprint: string): Promise<CertificateHolder | undefined> => {
    const clearings = known.clearings()
    const now = platform.now()
    const [username, ...others] = await listCertificateHolders(db, fingerprint)
    // A certificate in two credentials identifies neither.
    const credential = username === undefined || others.length > 0 ? undefined : await findAuthentic(username)
    if (credential === undefined || credential.isDisabled || !credential.certificates.includes(fingerprint)) return undefined
    if (hasEnded(credential.expiresAt, now)) return undefined
    const end = credential.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY
    if (clearings === known.clearings()) known.set(fingerprint, credential, { from: now, to: Math.min(now + REMEMBERED_MS, end) })
    return credential
  }

  return {
    verify: async (fingerprint, source) => {
      const holder = known.get(fingerprint) ?? (await find(fingerprint))
      if (holder !== undefined && isAdmitted(holder, { source })) return holder
      const reason = holder === undefined ? `client certificate ${fingerprint} of no credential` : 'not from this address'
      events.callerRefused({ username: holder?.username, source, reason })
      throw new PawlError('CREDENTIALS_INVALID')
    },
    forget: known.clear,
  }
}

/** A password, and the row that is stored for it. */
export interface PreparedPassword {
  readonly password: string
  readonly row: NewPassword
}

/** Changes credentials, each in the caller's transaction, and renews the MAC over the row. */
interface CredentialChanges {
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
function createCredentialChanges(macKey: KeyObject, platform: Pick<Platform, 'now'>): CredentialChanges {
  /**
   * Locks a credential, changes it, and renews its MAC. Without the lock, the new MAC could also cover values that somebody else wrote into the
   * row.
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
  refused('ADMINISTRATION_REFUSED', 'certificates', `stands for ${holder}`, fingerprint)

const KNOWN_MAX = 1_000
