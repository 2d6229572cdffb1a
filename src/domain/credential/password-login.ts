// Checks passwords of callers (cloud §2). It remembers a right password for some seconds, so that the calls of a back end do not each wait for a
// slow hash.
import { hmac, importHmacKey } from '../../crypto/hash.ts'
import { createRanges } from '../../lib/address.ts'
import { toBase64 } from '../../lib/base64.ts'
import { concat, equalPublic, u32, utf8 } from '../../lib/bytes.ts'
import { createMemory } from '../../lib/memory.ts'
import type { CredentialWithPasswords, PasswordRow } from '../../storage/credential/credentials.ts'
import type { Login, LoginGate } from './login-gate.ts'
import { type Passwords, usablePasswords } from './password.ts'
import type { DomainParts } from '../secrets/secrets.ts'

/** A caller and the id of the right password. An empty list of allowed addresses allows every address. */
export interface VerifiedCaller
  extends Pick<CredentialWithPasswords, 'username' | 'role' | 'applicationId' | 'allowedAddresses' | 'rights'> {
  readonly passwordId: string
}

interface PasswordLogin {
  readonly verify: (login: Login, password: string) => Promise<VerifiedCaller>
  readonly forget: () => void
}

/** Finds a credential; one that was altered in the database counts as missing. */
export type FindAuthentic = (username: string) => Promise<CredentialWithPasswords | undefined>

/** Whether a credential may be used from the caller's address. */
export const isAdmitted = (
  { allowedAddresses }: Pick<VerifiedCaller, 'allowedAddresses'>,
  { source }: Pick<Login, 'source'>,
): boolean => allowedAddresses.length === 0 || createRanges(allowedAddresses)(source)

/**
 * A credential is remembered for so long. A change by another process is noticed within five seconds, including the time of the request that read
 * it.
 */
export const REMEMBERED_MS = 4_000

export function createPasswordLogin(
  { platform, findAuthentic }: Pick<DomainParts, 'platform'> & { readonly findAuthentic: FindAuthentic },
  gate: LoginGate,
  passwords: Passwords,
): PasswordLogin {
  const cacheKey = importHmacKey(platform.randomBytes(32))
  const verified = createMemory<VerifiedCaller>({ max: VERIFIED_MAX, ttl: REMEMBERED_MS, clock: () => platform.now() })
  const rightRows = createMemory<PasswordRow>({ max: VERIFIED_MAX })

  const check = async (login: Login, password: string, key: string): Promise<VerifiedCaller> => {
    const clearings = verified.clearings()
    const now = platform.now()
    const credential = await findAuthentic(login.username)
    // From an address that is not admitted no password is right. A right one takes the same steps as a wrong one, also the hash.
    const admitted = credential !== undefined && isAdmitted(credential, login) ? credential : undefined
    // A right password stays right while its row exists, so scrypt is not computed again.
    const right = admitted && rightRows.get(key)
    const remembered = right && usablePasswords(admitted, now).find((row) => equalPublic(row.passwordHash, right.passwordHash))
    // Callers share a check only for the same MAC of the credential: a password that was right before a change may be wrong after it.
    const shown = `${key}\0${admitted?.mac ? toBase64(admitted.mac) : ''}`
    const row =
      remembered ??
      (await gate.check(login, shown, platform.monotonic(), (lane) => passwords.findMatch(admitted, password, now, lane)))
    if (admitted === undefined || row === undefined) throw gate.fail(login, platform.monotonic(), credential !== undefined)
    // The credential may have changed while the hash waited for its turn.
    if (remembered === undefined && (clearings !== verified.clearings() || platform.now() - now >= REMEMBERED_MS)) {
      rightRows.set(key, row)
      return check(login, password, key)
    }
    gate.pass(login)
    const { role, applicationId, expiresAt, allowedAddresses, rights } = admitted
    const caller = { username: login.username, role, applicationId, passwordId: row.passwordId, allowedAddresses, rights }
    const ends = [expiresAt, row.expiresAt].map((end) => end?.getTime() ?? Number.POSITIVE_INFINITY)
    if (clearings === verified.clearings()) {
      verified.set(key, caller, { from: now, to: Math.min(now + REMEMBERED_MS, ...ends) })
      rightRows.set(key, row)
    }
    return caller
  }

  return {
    verify: async (login, password) => {
      gate.enter(login, platform.monotonic())
      const key = toBase64(hmac(cacheKey, concat(u32(login.username.length), utf8(login.username), utf8(password))))
      const known = verified.get(key)
      if (known === undefined || !isAdmitted(known, login)) return check(login, password, key)
      gate.pass(login)
      return known
    },
    forget: () => {
      verified.clear()
      rightRows.clear()
    },
  }
}

const VERIFIED_MAX = 1_000
