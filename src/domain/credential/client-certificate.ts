// Callers whose client certificate stands for a credential (cloud §2.3). The internal listener has checked the certificate itself.
import { PawlError } from '../../lib/errors.ts'
import { createMemory } from '../../lib/memory.ts'
import { listCertificateHolders } from '../../storage/credential/credentials.ts'
import { hasEnded } from './password.ts'
import type { DomainParts } from '../secrets/secrets.ts'
import { type FindAuthentic, isAdmitted, REMEMBERED_MS, type VerifiedCaller } from './password-login.ts'

/** Whom a certificate stands for. */
type CertificateHolder = Omit<VerifiedCaller, 'passwordId'>

export interface CertificateLogin {
  /**
   * Finds the caller of a certificate. `fingerprint` is its SHA-256, 64 hexadecimal digits. Throws CREDENTIALS_INVALID when no credential has
   * it, or may not be used from this address.
   */
  readonly verify: (fingerprint: string, source: string) => Promise<CertificateHolder>
  readonly forget: () => void
}

export function createCertificateLogin({
  db,
  platform,
  events,
  findAuthentic,
}: Omit<DomainParts, 'recordKeys'> & { readonly findAuthentic: FindAuthentic }): CertificateLogin {
  const known = createMemory<CertificateHolder>({ max: KNOWN_MAX, ttl: REMEMBERED_MS, clock: () => platform.now() })
  let generation = 0

  const find = async (fingerprint: string): Promise<CertificateHolder | undefined> => {
    const generationRead = generation
    const now = platform.now()
    const [username, ...others] = await listCertificateHolders(db, fingerprint)
    // Of two nobody is meant.
    const credential = username === undefined || others.length > 0 ? undefined : await findAuthentic(username)
    if (credential === undefined || credential.isDisabled || !credential.certificates.includes(fingerprint)) return undefined
    if (hasEnded(credential.expiresAt, now)) return undefined
    const end = credential.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY
    // A credential that was read before the memory was cleared may be out of date.
    if (generationRead === generation) known.set(fingerprint, credential, { from: now, to: Math.min(now + REMEMBERED_MS, end) })
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
    forget: () => {
      generation += 1
      known.clear()
    },
  }
}

const KNOWN_MAX = 1_000
