// Creates, reads, commits, blocks, unblocks and removes registrations: activations as the bank sees them (cloud §3, §17).
import { fromUtf8 } from '../../lib/bytes.ts'
import { PawlError, refused } from '../../lib/errors.ts'
import { untilSettled } from '../../lib/until-settled.ts'
import { holdChanges } from '../../log/events.ts'
import { changeState, setActivationFlags } from '../../storage/activation/change.ts'
import { findRegistrationToCommit, type RegistrationToCommit } from '../../storage/activation/commit.ts'
import { lockNewRegistrations } from '../../storage/activation/device-slot.ts'
import { findRegistrations, type OwnerNames, type RegistrationRow } from '../../storage/activation/find.ts'
import { findRegistrationBasis, type LiveActivation, type RegistrationBasis } from '../../storage/activation/insert.ts'
import {
  asOneStep,
  type Db,
  inTransaction,
  isPool,
  isUniqueViolation,
  type Pool,
  type Tx,
} from '../../storage/database/database.ts'
import type { ActivationState, CommitPhase } from '../../storage/database/schema.ts'
import { findSigningMasterKeys, keysAltered, openMasterKey } from '../application/master-keys.ts'
import { createAuditEvent } from '../audit/audit.ts'
import { places, unlessAltered } from '../secrets/secrets.ts'
import { composeActivationQrText, createActivationCode, signQrText } from './code.ts'
import { type ActivationParts, type Parent, prepareActivation, type RegistrationLimits } from './created.ts'
import { countWrongOtp, createOtpJudge, type OtpJudge } from './otp.ts'
import { endBlockIfOver } from './authentication.ts'

/** The owner of a registration. */
export interface Owner {
  readonly applicationId: string
  readonly userId: string
}

/** One registration of an owner. With `activationId` only that one counts, without it the only one. */
interface OwnedRegistration extends Owner {
  readonly activationId?: string | undefined
}

/**
 * Reads the live registration of a user. An expired one counts as removed, even if that is not stored yet. Throws REGISTRATION_CHANGE_REFUSED when
 * the user has several and `activationId` is undefined.
 */
export async function readRegistration(
  parts: Pick<ActivationParts, 'db' | 'platform'>,
  owner: OwnedRegistration,
): Promise<RegistrationRow | undefined> {
  const live = await listLive(parts, owner)
  if (live.length > 1) throw severalDevices()
  return live[0]
}

/** The live registrations of a user; with `activationId` that one alone. */
async function listLive(
  { db, platform }: Pick<ActivationParts, 'db' | 'platform'>,
  { applicationId, userId, activationId }: OwnedRegistration,
): Promise<readonly RegistrationRow[]> {
  const rows = await findRegistrations(db, applicationId, userId, new Date(platform.now()), activationId)
  return rows.filter((row) => !isExpired(row, platform.now()))
}

/** The error for a path that names only the user, when that user has several phones. */
export const severalDevices = (): PawlError =>
  refused('REGISTRATION_CHANGE_REFUSED', 'userId', 'has several registrations: the paths below /v2/registrations name one')

/** The error for a user without a registration in ACTIVE, and for a registration that is in another state or of somebody else. */
export const noActiveRegistration = (): PawlError =>
  refused('REGISTRATION_NOT_FOUND', 'registration', 'must be ACTIVE, and of this user and application')

/** The error for a state of a registration that does not allow the change. */
export const wrongState = (state: ActivationState): PawlError =>
  refused('REGISTRATION_CHANGE_REFUSED', 'registration', `is ${state}`)

/** The text of the QR code of a CREATED registration, the same at each call; empty if the row has none or its text was altered. */
export function openQrText(
  { recordKeys }: ActivationParts,
  owner: Owner,
  { activationId, activationQrCode }: RegistrationRow,
): string {
  if (activationQrCode === null) return ''
  const place = places.activationQrCode({ ...owner, activationId })
  return fromUtf8(unlessAltered(() => recordKeys.open(place, activationQrCode)) ?? new Uint8Array(0))
}

/** The rules by which a registration becomes active (v3 §8.5), and values that replace the settings. */
export interface RegistrationRules extends RegistrationLimits {
  /** The phase in which the registration is committed and its OTP is demanded; ON_COMMIT unless given. */
  readonly commitPhase?: CommitPhase
  /** The result of ActivationOtps.hash; null, unless given, for a registration without an OTP. */
  readonly otpHash?: Uint8Array | null
  /** Whether the user may already have a live registration, in an application where users may have several. */
  readonly isFurther?: boolean
  /** The activation that asked for the code. Its phone shows the code, so the bank does not get it. */
  readonly parent?: Parent
  /** User name of the credential that asked, for the audit row. */
  readonly verifiedBy?: string
}

interface CreatedRegistration {
  readonly activationId: string
  readonly activationQrCodeData: string
}

/**
 * Creates a registration. Undefined when the application does not exist. Throws REGISTRATION_EXISTS when the user has a live registration and may
 * have no second one, even if another request creates it at the same time, REGISTRATION_CHANGE_REFUSED when the user has several, and
 * REQUEST_INVALID when the keys of the application were altered in the database.
 */
export async function createRegistration(
  parts: ActivationParts,
  named: OwnerNames,
  { isFurther = false, ...rules }: RegistrationRules = {},
): Promise<CreatedRegistration | undefined> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const basis = await findBasis(parts, named, isFurther)
    if (basis === undefined) return undefined
    const created = await createOn(parts, named.userId, basis, rules)
    if (created !== undefined) return created
  }
  throw new PawlError('INTERNAL', { detail: 'no registration could be stored' })
}

type Basis = Pick<RegistrationBasis, 'applicationId' | 'isProtocol3Admitted'> & {
  readonly signingKey: NonNullable<RegistrationBasis['signingKey']>
  /** Whether the registration must be the user's only one. The application allows several, so no index refuses a second one. */
  readonly isToBeAlone: boolean
}

/** Reads the basis of a new registration. Removes a live registration that has expired, and throws REGISTRATION_EXISTS for another one. */
async function findBasis(parts: ActivationParts, named: OwnerNames, isFurther: boolean): Promise<Basis | undefined> {
  const basis = await findRegistrationBasis(parts.db, named)
  if (basis === undefined) return undefined
  const { applicationId, isProtocol3Admitted, signingKey } = basis
  if (!(isFurther && basis.isMultiDevice)) await makeRoom(parts, { applicationId, userId: named.userId }, basis)
  const isToBeAlone = basis.isMultiDevice && !isFurther
  if (signingKey !== undefined) return { applicationId, isProtocol3Admitted, signingKey, isToBeAlone }
  await findSigningMasterKeys(parts, applicationId, isProtocol3Admitted ? 'EC_P256' : 'EC_P384')
  return findBasis(parts, named, isFurther)
}

/**
 * Stores that the only registration of a user has expired. Throws REGISTRATION_EXISTS when it has not. Where a user may have several, the end of
 * expired ones need not be stored.
 */
async function makeRoom(
  parts: Pick<ActivationParts, 'db' | 'platform' | 'events'>,
  owner: Owner,
  { existing, isMultiDevice }: Pick<RegistrationBasis, 'existing' | 'isMultiDevice'>,
): Promise<void> {
  if (existing === undefined) return
  const isFree = isMultiDevice ? (await readRegistration(parts, owner)) === undefined : await expire(parts, owner, existing)
  if (!isFree) throw new PawlError('REGISTRATION_EXISTS')
}

/** Creates the registration. Undefined when the user got a live registration meanwhile, or when the random code of 80 bits exists already. */
async function createOn(
  parts: ActivationParts,
  userId: string,
  { applicationId, isProtocol3Admitted, signingKey, isToBeAlone }: Basis,
  rules: RegistrationRules,
): Promise<CreatedRegistration | undefined> {
  const code = createActivationCode(parts.platform.randomBytes(10))
  const masterKey = unlessAltered(() => openMasterKey(parts.recordKeys, signingKey))
  if (masterKey === undefined) throw keysAltered()
  const signature = await signQrText({ isProtocol3Admitted }, code, masterKey)
  const qrText = composeActivationQrText(code, signature)
  const kept = rules.parent === undefined ? qrText : null
  const usual = { commitPhase: 'ON_COMMIT', otpHash: null } as const
  const { created, insert } = prepareActivation(parts, { applicationId, userId, code, qrText: kept, ...usual, ...rules })
  try {
    // Administration calls this within a transaction, which a violation of the index would end. So the insert is a step that can be undone alone.
    await (isToBeAlone ? insertAlone(parts, { applicationId, userId }, insert) : asOneStep(parts.db, insert))
    return { activationId: created.activationId, activationQrCodeData: qrText }
  } catch (error) {
    if (isUniqueViolation(error)) return undefined
    throw error
  }
}

/**
 * Inserts the only registration of a user. Throws REGISTRATION_EXISTS when the user has got a live one meanwhile, and REGISTRATION_CHANGE_REFUSED
 * when there are several.
 */
async function insertAlone(
  parts: Pick<ActivationParts, 'db' | 'platform'>,
  owner: Owner,
  insert: (db: Db) => Promise<void>,
): Promise<void> {
  const within = async (tx: Tx): Promise<void> => {
    await lockNewRegistrations(tx, owner)
    if ((await readRegistration({ ...parts, db: tx }, owner)) !== undefined) throw new PawlError('REGISTRATION_EXISTS')
    await asOneStep(tx, insert)
  }
  await (isPool(parts.db) ? inTransaction(parts.db, within) : within(parts.db))
}

/**
 * Judges the OTP of a commit before the transaction begins. The returned judge remembers the result. Throws REGISTRATION_CHANGE_REFUSED as
 * commitRegistration does.
 */
export async function prepareCommit(parts: ActivationParts, owner: OwnedRegistration, otp: string | null): Promise<OtpJudge> {
  const judgeOtp = createOtpJudge(parts.activationOtps, 'ON_COMMIT', otp)
  const found = await findToCommit(parts, owner)
  if (found?.live?.state === 'PENDING_COMMIT') await judgeOtp(found.live)
  return judgeOtp
}

/**
 * Commits a registration, from PENDING_COMMIT to ACTIVE. Returns NO_APPLICATION when the application does not exist. Throws REGISTRATION_NOT_FOUND
 * from any other state, also on a second commit. Throws OTP_INVALID when an OTP is demanded and this one is wrong; too many wrong OTPs remove the
 * registration. Throws REGISTRATION_CHANGE_REFUSED when the user has several registrations and `activationId` is undefined.
 */
export async function commitRegistration(
  parts: ActivationParts,
  named: OwnerNames,
  { otp, externalUserId, verifiedBy }: { readonly otp: string | null } & OnWord,
  judgeOtp: OtpJudge = createOtpJudge(parts.activationOtps, 'ON_COMMIT', otp),
): Promise<'COMMITTED' | 'NO_APPLICATION'> {
  return untilSettled('registration', async () => {
    const found = await findToCommit(parts, named)
    if (found === undefined) return 'NO_APPLICATION'
    const row = found.live
    if (row?.state !== 'PENDING_COMMIT' || isExpired(row, parts.platform.now()))
      throw refused('REGISTRATION_NOT_FOUND', 'registration', 'must be PENDING_COMMIT')
    const verdict = await judgeOtp(row)
    const isRefused = verdict !== 'PASSED' && verdict !== 'NOT_DEMANDED'
    if (isRefused && (verdict !== 'WRONG' || (await countWrongOtp(parts, row, verifiedBy))))
      throw new PawlError('OTP_INVALID', { detail: `the OTP is ${verdict.toLowerCase()}` })
    if (isRefused) return undefined
    const isChanged = await change(parts, row, row, { to: 'ACTIVE', event: COMMITTED, externalUserId, verifiedBy })
    return isChanged ? 'COMMITTED' : undefined
  })
}

/**
 * Reads the application and the registration to commit. Throws REGISTRATION_CHANGE_REFUSED when there are several and `activationId` is undefined.
 */
async function findToCommit(
  parts: Pick<ActivationParts, 'db' | 'platform'>,
  named: OwnerNames,
): Promise<RegistrationToCommit | undefined> {
  const found = await findRegistrationToCommit(parts.db, named)
  if (!found?.isMultiDevice || found.live === undefined || named.activationId !== undefined) return found
  const { applicationId } = found
  const one = await readRegistration(parts, { applicationId, userId: named.userId })
  if (one === undefined) return { ...found, live: undefined }
  return findRegistrationToCommit(parts.db, { ...named, applicationId, activationId: one.activationId })
}

/** The person and the credential behind a change. */
interface OnWord {
  /** The bank's name for the person. */
  readonly externalUserId: string | null
  /** User name of the credential, for the audit row. */
  readonly verifiedBy?: string | undefined
}

type RegistrationChange = 'BLOCK' | 'UNBLOCK' | 'REMOVE'

/**
 * Blocks, unblocks or removes a registration. A BLOCK during a temporary block is accepted and removes the end of the block: after a refusal the
 * phone would be ACTIVE again later (DIVERGENCES#block-during-temporary-block). Throws REGISTRATION_NOT_FOUND without a live registration. Throws
 * REGISTRATION_CHANGE_REFUSED from a wrong state, and when there are several and `activationId` is undefined.
 */
export async function changeRegistration(
  parts: ActivationParts,
  owner: OwnedRegistration,
  wanted: { readonly change: RegistrationChange; readonly reason: string | null } & OnWord,
): Promise<void> {
  const { from, to, event } = CHANGES[wanted.change]
  const reason = wanted.change === 'BLOCK' ? (wanted.reason ?? 'NOT_SPECIFIED') : null
  // A phone may change the row between the read and the write; then the loop reads it again. A change from a final state is refused.
  await untilSettled('registration', async () => {
    const row = await readRegistration(parts, owner)
    if (row === undefined) throw new PawlError('REGISTRATION_NOT_FOUND')
    const isAllowed = from.includes(row.state) || (wanted.change === 'BLOCK' && row.blockExpiresAt !== null)
    if (!isAllowed) throw wrongState(row.state)
    if (await endBlockIfOver(parts, row)) return undefined
    const { externalUserId, verifiedBy } = wanted
    const isChanged = await change(parts, owner, row, { to, event, reason, externalUserId, verifiedBy })
    return isChanged ? 'CHANGED' : undefined
  })
}

/** Whether a registration in CREATED or PENDING_COMMIT is past its expiry. */
export const isExpired = (row: { state: ActivationState; expiresAt: Date }, now: number): boolean =>
  (row.state === 'CREATED' || row.state === 'PENDING_COMMIT') && row.expiresAt.getTime() <= now

/** Stores that a registration has expired; false when it has not. */
export async function expire(
  parts: Pick<ActivationParts, 'db' | 'platform' | 'events'>,
  owner: Owner,
  row: LiveActivation,
): Promise<boolean> {
  if (!isExpired(row, parts.platform.now())) return false
  await change(parts, owner, row, { to: 'REMOVED', event: 'registration_expired', reason: 'EXPIRED' })
  return true
}

async function change(
  parts: Pick<ActivationParts, 'db' | 'platform' | 'events'>,
  { applicationId, userId }: Owner,
  row: Pick<RegistrationRow, 'activationId' | 'rowVersion' | 'state'>,
  next: { to: ActivationState; event: string; reason?: string | null } & Partial<OnWord>,
): Promise<boolean> {
  const at = new Date(parts.platform.now())
  const { to, event, reason = null, externalUserId = null, verifiedBy } = next
  const audit = createAuditEvent(
    { applicationId, userId, activationId: row.activationId },
    event,
    { reason, externalUserId },
    at.getTime(),
  )
  const isStored = await changeState(
    parts.db,
    { activationId: row.activationId, rowVersion: row.rowVersion, from: row.state, to, reason, externalUserId, at },
    { ...audit, verifiedBy },
  )
  if (isStored) parts.events.registrationChanged({ activationId: row.activationId, from: row.state, to, reason })
  return isStored
}

const CHANGES: Record<RegistrationChange, { from: readonly ActivationState[]; to: ActivationState; event: string }> = {
  BLOCK: { from: ['ACTIVE'], to: 'BLOCKED', event: 'registration_blocked' },
  UNBLOCK: { from: ['BLOCKED'], to: 'ACTIVE', event: 'registration_unblocked' },
  REMOVE: { from: ['CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED'], to: 'REMOVED', event: 'registration_removed' },
}

const COMMITTED = 'registration_committed'
const ATTEMPTS_MAX = 10

/** The request for one more registration. */
export interface FurtherRegistration extends Omit<RegistrationRules, 'isFurther'> {
  readonly flags: readonly string[]
  /** Whether the request is refused while another registration of the user waits for its phone or its commit. */
  readonly isOnlyOneIncomplete: boolean
  readonly verifiedBy: string
}

/**
 * Creates a registration with flags, beside live ones if the application allows several. Undefined when the application does not exist. Throws
 * REGISTRATION_EXISTS as createRegistration does, and REGISTRATION_NOT_ALLOWED as `isOnlyOneIncomplete` says.
 */
export async function createFurther(
  parts: ActivationParts & { readonly db: Pool },
  owner: Owner,
  { flags, isOnlyOneIncomplete, ...rules }: FurtherRegistration,
): Promise<CreatedRegistration | undefined> {
  const { verifiedBy } = rules
  const { events, tell } = holdChanges(parts.events)
  const created = await inTransaction(parts.db, async (tx) => {
    const within = { ...parts, events, db: tx }
    if (isOnlyOneIncomplete) {
      await lockNewRegistrations(tx, owner)
      const live = await listLive(within, owner)
      if (live.some(({ state }) => state === 'CREATED' || state === 'PENDING_COMMIT'))
        throw new PawlError('REGISTRATION_NOT_ALLOWED')
    }
    const registration = await createRegistration(within, owner, { ...rules, isFurther: true })
    if (registration !== undefined && flags.length > 0)
      await setActivationFlags(tx, registration.activationId, [...new Set(flags)], new Date(parts.platform.now()), verifiedBy)
    return registration
  })
  tell()
  return created
}
