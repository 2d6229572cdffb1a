// Hashes and compares passwords of credentials (cloud §2).
//
// Generated passwords have 256 random bits and are stored as a keyed hash. A password that a person chose passes scrypt before that hash. All
// passwords of a credential have one salt, so one scrypt checks them all. A refused password costs exactly one scrypt, whether the user is unknown,
// disabled or expired or the password is wrong. So the time of the answer does not show the reason.
import type { KeyObject } from 'node:crypto'
import { hmac } from '../../crypto/hash.ts'
import { hashPassword } from '../../crypto/kdf.ts'
import { concat, equalConstantTime, utf8 } from '../../lib/bytes.ts'
import type { CredentialWithPasswords, PasswordRow } from '../../storage/credential/credentials.ts'

type PasswordScheme = PasswordRow['scheme']

/** Runs a slow hash when its turn comes. */
export type Lane = (work: () => Promise<Uint8Array>) => Promise<Uint8Array>

export interface Passwords {
  /**
   * The stored form of a password: HMAC-SHA-256 under the installation's key, 32 bytes. `salt` is that of the credential, 16 bytes. Errors of the
   * lane are passed on.
   */
  readonly hash: (scheme: PasswordScheme, password: string, salt: Uint8Array, lane: Lane) => Promise<Uint8Array>
  /** Finds the row that a password matches. Errors of the lane are passed on. */
  readonly findMatch: (
    credential: CredentialWithPasswords | undefined,
    password: string,
    now: number,
    lane: Lane,
  ) => Promise<PasswordRow | undefined>
}

/** Hashes and compares passwords under the installation's `credentialHash` key. */
export function createPasswords(credentialHash: KeyObject): Passwords {
  const keyed = (scheme: PasswordScheme, salt: Uint8Array, value: Uint8Array) =>
    hmac(credentialHash, concat(utf8(scheme), salt, value))
  const stretch = (password: string, salt: Uint8Array, lane: Lane) => lane(() => hashPassword(utf8(password), salt))

  return {
    hash: async (scheme, password, salt, lane) =>
      keyed(scheme, salt, scheme === 'chosen' ? await stretch(password, salt, lane) : utf8(password)),
    findMatch: async (credential, password, now, lane) => {
      const salt = credential?.salt ?? NO_SALT
      const usable = usablePasswords(credential, now)
      const matching = (scheme: PasswordScheme, hash: Uint8Array) =>
        usable.filter((row) => row.scheme === scheme && equalConstantTime(row.passwordHash, hash)).at(0)
      const generated = matching('generated', keyed('generated', salt, utf8(password)))
      return generated ?? matching('chosen', keyed('chosen', salt, await stretch(password, salt, lane)))
    },
  }
}

/** The passwords of a credential that may be used now; none of a disabled or expired one. */
export function usablePasswords(credential: CredentialWithPasswords | undefined, now: number): readonly PasswordRow[] {
  if (credential === undefined || credential.isDisabled || hasEnded(credential.expiresAt, now)) return []
  return credential.passwords.filter(({ expiresAt }) => !hasEnded(expiresAt, now))
}

/** Whether a time is over. Null means that there is no end; an invalid time counts as over. */
export const hasEnded = (expiresAt: Date | null, now: number): boolean => expiresAt !== null && !(now < expiresAt.getTime())

const NO_SALT = new Uint8Array(16)
