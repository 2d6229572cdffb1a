// Passwords of credentials: how they are stored and compared (cloud §2).
//
// Generated passwords carry 256 random bits and are stored as a keyed hash; passwords chosen by a person pass scrypt first. All
// passwords of a credential share its salt, so one scrypt checks them all. A password that is refused has cost exactly one scrypt,
// whether the user is unknown, disabled or expired or the password wrong: time does not tell which.
import type { KeyObject } from 'node:crypto'
import { hmac } from '../crypto/hmac.ts'
import { hashPassword } from '../crypto/password-hash.ts'
import { concat, equalConstantTime, utf8 } from '../lib/bytes.ts'
import { PawlError } from '../lib/errors.ts'
import { createSemaphore } from '../lib/semaphore.ts'
import type { CredentialWithPasswords, PasswordRow } from '../storage/credentials.ts'

export type PasswordScheme = PasswordRow['scheme']

export interface Passwords {
  /** Stored form: HMAC-SHA-256 under the installation's key, 32 bytes. `salt`: the credential's, 16 bytes. */
  readonly hash: (scheme: PasswordScheme, password: string, salt: Uint8Array) => Promise<Uint8Array>
  /**
   * The row a password matches. Throws TOO_MANY_REQUESTS when `source` has too many waiting, UNAVAILABLE when everybody together has.
   */
  readonly findMatch: (
    credential: CredentialWithPasswords | undefined,
    password: string,
    now: number,
    source: string,
  ) => Promise<PasswordRow | undefined>
}

/** Passwords under the installation's `credentialHash` key. */
export function createPasswords(credentialHash: KeyObject): Passwords {
  const runScrypt = createSemaphore(SCRYPTS_AT_ONCE, SCRYPTS_WAITING_MAX)
  const waitingBySource = new Map<string, number>()
  const keyed = (scheme: PasswordScheme, salt: Uint8Array, value: Uint8Array) =>
    hmac(credentialHash, concat(utf8(scheme), salt, value))
  const stretch = (password: string, salt: Uint8Array) => runScrypt(() => hashPassword(utf8(password), salt))

  const stretchFor = async (source: string, password: string, salt: Uint8Array): Promise<Uint8Array> => {
    const waiting = waitingBySource.get(source) ?? 0
    if (waiting >= WAITING_PER_SOURCE_MAX)
      throw new PawlError('TOO_MANY_REQUESTS', { detail: 'too many logins of one source', retryAfterSeconds: 1 })
    waitingBySource.set(source, waiting + 1)
    try {
      return await stretch(password, salt)
    } finally {
      const left = (waitingBySource.get(source) ?? 1) - 1
      if (left > 0) waitingBySource.set(source, left)
      else waitingBySource.delete(source)
    }
  }

  return {
    hash: async (scheme, password, salt) =>
      keyed(scheme, salt, scheme === 'chosen' ? await stretch(password, salt) : utf8(password)),
    findMatch: async (credential, password, now, source) => {
      const salt = credential?.salt ?? NO_SALT
      const usable = usablePasswords(credential, now)
      const matching = (scheme: PasswordScheme, hash: Uint8Array) =>
        usable.filter((row) => row.scheme === scheme && equalConstantTime(row.passwordHash, hash)).at(0)
      const generated = matching('generated', keyed('generated', salt, utf8(password)))
      return generated ?? matching('chosen', keyed('chosen', salt, await stretchFor(source, password, salt)))
    },
  }
}

/** The passwords of a credential that may be used now; none of a disabled or expired one. */
export function usablePasswords(credential: CredentialWithPasswords | undefined, now: number): readonly PasswordRow[] {
  if (credential === undefined || credential.isDisabled || hasEnded(credential.expiresAt, now)) return []
  return credential.passwords.filter(({ expiresAt }) => !hasEnded(expiresAt, now))
}

const hasEnded = (expiresAt: Date | null, now: number): boolean => expiresAt !== null && expiresAt.getTime() <= now

const NO_SALT = new Uint8Array(16)
const SCRYPTS_AT_ONCE = 2
const SCRYPTS_WAITING_MAX = 200
const WAITING_PER_SOURCE_MAX = 20
