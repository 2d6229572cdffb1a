// Makes an activation code at the request of an active phone, to bind another application of the bank on the same phone to its user
// (mobile-token §9).
import { PawlError } from '../../lib/errors.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import { findRegistrationBasis } from '../../storage/activation/insert.ts'
import { findApplication } from '../../storage/application/applications.ts'
import { toList } from '../../storage/database/columns.ts'
import type { Db } from '../../storage/database/database.ts'
import type { ActivationParts } from './created.ts'
import { createRegistration, isExpired } from './registration.ts'

/**
 * Creates a registration of the same user in the target application. Its key exchange makes it ACTIVE when the OTP is right. Returns the values that
 * the asking app hands to the other app, together with the OTP; the signature is by the target's master key, in Base64. Throws
 * ACTIVATION_CODE_FAILED when the parent's application may not hand over to the target, when the owner of the parent is not verified, or when
 * the user has a live registration in the target and may have no further one.
 */
export async function createTransferCode(
  parts: ActivationParts,
  { activationId, applicationId: source, userId, flags }: ActivationRow,
  { applicationId, otp }: { readonly applicationId: string; readonly otp: string },
) {
  const transfer = await findTransfer(parts.db, source, applicationId)
  if (transfer === undefined) throw refuse('the application does not hand over to this one')
  if (isUnverified(toList(flags))) throw refuse('the owner of the phone is yet to be verified')
  // This check comes before the slow hash of the OTP.
  const basis = await findRegistrationBasis(parts.db, { applicationId, userId })
  const existing = basis?.isMultiDevice ? undefined : basis?.existing
  if (existing !== undefined && !isExpired(existing, parts.platform.now())) throw refuse(HAS_ONE)
  const created = await createRegistration(
    parts,
    { applicationId, userId },
    {
      commitPhase: 'ON_KEY_EXCHANGE',
      otpHash: await parts.activationOtps.hash(applicationId, otp),
      isFurther: true,
      expiresAt: new Date(parts.platform.now() + VALIDITY_MS),
      parent: { activationId, isReplaced: transfer.type === 'MOVE', initialFlags: transfer.initialFlags ?? [] },
    },
  ).catch((error: unknown) => {
    throw error instanceof PawlError && error.code === 'REGISTRATION_EXISTS' ? refuse(HAS_ONE) : error
  })
  if (created === undefined) throw refuse('there is no such application')
  const [activationCode = '', activationSignature = ''] = created.activationQrCodeData.split('#')
  return { activationId: created.activationId, activationCode, activationSignature }
}

/** Finds the rule by which a phone of the application `source` may hand over to `target`; undefined when there is none (any more). */
export const findTransfer = async (db: Db, source: string, target: string) =>
  (await findApplication(db, source))?.transfers.find(({ targets }) => targets.includes(target))

/**
 * Whether the owner of an activation with these flags is still to be verified. Such an activation may not approve anything. It may also not ask for
 * a code, because the new activation would have other flags.
 */
export const isUnverified = (flags: readonly string[]): boolean => UNVERIFIED_FLAGS.some((flag) => flags.includes(flag))

const UNVERIFIED_FLAGS = ['VERIFICATION_PENDING', 'VERIFICATION_IN_PROGRESS']

const refuse = (detail: string): PawlError => new PawlError('ACTIVATION_CODE_FAILED', { detail })

const HAS_ONE = 'the user has a live registration in that application, and may have one'
const VALIDITY_MS = 300_000
