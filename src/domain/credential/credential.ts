// Credentials of the cloud API (cloud §2): HTTP Basic users with a role and, for the bank's systems, one application.
import type { KeyObject } from 'node:crypto'
import { toBase64Url } from '../../lib/base64.ts'
import { PawlError } from '../../lib/errors.ts'
import type { Events } from '../../log/events.ts'
import type { Platform } from '../../lib/platform.ts'
import { isWeakPassword } from '../../lib/weak-password.ts'
import { type CredentialWithPasswords, findCredential } from '../../storage/credential/credentials.ts'
import type { Pool } from '../../storage/database/database.ts'
import type { Right, Role } from '../../storage/database/schema.ts'
import type { SharedFailures } from '../limits/shared-failures.ts'
import { createCredentialChanges, type CredentialChanges, type PreparedPassword } from './changes.ts'
import { type CertificateLogin, createCertificateLogin } from './client-certificate.ts'
import { createLoginGate, type Login } from './login-gate.ts'
import { isCredentialAuthentic } from './mac.ts'
import { createPasswords } from './password.ts'
import { createPasswordLogin, type VerifiedCaller } from './password-login.ts'

export interface CredentialParts {
  readonly db: Pool
  readonly platform: Platform
  readonly events: Events
  readonly installationKeys: { readonly credentialHash: KeyObject; readonly credentialMac: KeyObject }
  readonly settings: { readonly credentialFailuresPerMinute: number }
  /** The failures of all processes on the database, if there may be several. */
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
   * Checks the password of a caller. Throws CREDENTIALS_INVALID, or TOO_MANY_REQUESTS while this user name and source have to wait after too
   * many failures. Then even a right password is refused, because it is not looked at.
   */
  readonly verify: (login: Login, password: string) => Promise<VerifiedCaller>
  /** Whether a password is one of the user's, without counting or logging. */
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
    if (chosen !== undefined && isWeakPassword(chosen)) throw passwordTooWeak()
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

const passwordTooWeak = (): PawlError =>
  new PawlError('REQUEST_INVALID', {
    detail: 'an easily guessed password',
    violations: [{ fieldName: 'password', hint: 'must not be easily guessed' }],
  })
