// Hashes and judges the one-time password of an activation. The user gets it apart from the activation code, and it is demanded in one of two
// phases (v3 §8.5).
//
//   stored = salt (16) ‖ HMAC-SHA-256(credential key, "activation-otp" ‖ salt ‖ scrypt(OTP, salt))
import type { KeyObject } from 'node:crypto'
import { hmac } from '../../crypto/hash.ts'
import { hashPassword } from '../../crypto/kdf.ts'
import { concat, equalConstantTime, equalPublic, utf8 } from '../../lib/bytes.ts'
import { createFairQueue } from '../../lib/fair-queue.ts'
import type { Platform } from '../../lib/platform.ts'
import { type CommitRow, storeOtpFailure } from '../../storage/activation/commit.ts'
import type { CommitPhase } from '../../storage/database/schema.ts'
import { createAuditEvent } from '../audit/audit.ts'
import type { DomainParts } from '../secrets/secrets.ts'

export interface ActivationOtps {
  /** The stored form of an OTP, 48 bytes. Throws UNAVAILABLE when too many hashes wait. The applications take turns. */
  readonly hash: (applicationId: string, otp: string) => Promise<Uint8Array>
  /** Compares an OTP with its stored form, in constant time. Throws UNAVAILABLE when too many hashes wait; the OTP is then not judged. */
  readonly isRight: (applicationId: string, otp: string, stored: Uint8Array) => Promise<boolean>
}

/** Hashes and compares OTPs under the installation's `credentialHash` key. */
export function createActivationOtps(credentialHash: KeyObject, platform: Pick<Platform, 'randomBytes'>): ActivationOtps {
  const scrypts = createFairQueue({ atOnce: SCRYPTS_AT_ONCE, waitingMax: SCRYPTS_WAITING_MAX })
  const hashWith = async (applicationId: string, otp: string, salt: Uint8Array): Promise<Uint8Array> => {
    // One back end that makes many registrations at once must not have the OTPs of other applications refused.
    const stretched = await scrypts.run(() => hashPassword(utf8(otp), salt), { key: applicationId })
    return concat(salt, hmac(credentialHash, concat(utf8('activation-otp'), salt, stretched)))
  }
  return {
    hash: (applicationId, otp) => hashWith(applicationId, otp, platform.randomBytes(SALT_BYTES)),
    isRight: async (applicationId, otp, stored) =>
      equalConstantTime(await hashWith(applicationId, otp, stored.subarray(0, SALT_BYTES)), stored),
  }
}

/**
 * The results in the table of v3 §8.5. After PASSED and NOT_DEMANDED the request goes on. WRONG counts as a failure, MISSING and UNEXPECTED do not.
 */
type OtpVerdict = 'PASSED' | 'NOT_DEMANDED' | 'WRONG' | 'MISSING' | 'UNEXPECTED'

export type OtpJudge = (demand: Pick<CommitRow, 'applicationId' | 'commitPhase' | 'otpHash'>) => Promise<OtpVerdict>

/**
 * Judges one OTP in one phase. Its caller judges again for each new read of the activation. The slow hash is computed again only for another
 * `otpHash`.
 */
export function createOtpJudge(otps: ActivationOtps, phase: CommitPhase, otp: string | null): OtpJudge {
  const sent = otp === null || otp.trim() === '' ? undefined : otp
  let known: { readonly otpHash: Uint8Array; readonly verdict: OtpVerdict } | undefined
  return async ({ applicationId, commitPhase, otpHash }) => {
    if (otpHash === null) return 'NOT_DEMANDED'
    if (commitPhase !== phase) return sent === undefined ? 'NOT_DEMANDED' : 'UNEXPECTED'
    if (sent === undefined) return 'MISSING'
    if (known === undefined || !equalPublic(known.otpHash, otpHash)) {
      known = { otpHash, verdict: (await otps.isRight(applicationId, sent, otpHash)) ? 'PASSED' : 'WRONG' }
    }
    return known.verdict
  }
}

/**
 * Counts a wrong OTP. When the maximum is reached, it removes the activation. `verifiedBy`: user name of the credential that sent it, for the audit
 * row; undefined for one of a phone. Returns false when the activation has changed since it was read; the caller then reads and judges again.
 */
export async function countWrongOtp(
  { db, platform, events }: Omit<DomainParts, 'recordKeys'>,
  activation: Omit<CommitRow, 'expiresAt' | 'commitPhase' | 'otpHash'>,
  verifiedBy?: string,
): Promise<boolean> {
  const { activationId, rowVersion, state: from } = activation
  const at = new Date(platform.now())
  const failedAttempts = activation.failedAttempts + 1
  const isLast = failedAttempts >= activation.maxFailedAttempts
  const to = isLast ? 'REMOVED' : from
  const reason = isLast ? 'OTP_MAX_FAILED_ATTEMPTS' : 'OTP_FAILED_ATTEMPT'
  const eventType = isLast ? 'registration_removed' : 'activation_otp_invalid'
  const isStored = await storeOtpFailure(
    db,
    { activationId, rowVersion, from, to, failedAttempts, reason, at },
    { ...createAuditEvent(activation, eventType, { reason }, at.getTime()), verifiedBy },
  )
  if (isStored && isLast) events.registrationChanged({ activationId, from, to, reason })
  return isStored
}

const SALT_BYTES = 16
const SCRYPTS_AT_ONCE = 2
const SCRYPTS_WAITING_MAX = 100
