// Approves operations without a connection: the phone reads the operation from a QR code, and its user types a one-time password (cloud §6.5, §6.6).
import { toBase64 } from '../lib/base64.ts'
import { utf8 } from '../lib/bytes.ts'
import { type ErrorCode, PawlError, refused, requestRefused } from '../lib/errors.ts'
import { untilSettled } from '../lib/until-settled.ts'
import { type ActivationRow, findRegistrations, type ReadActivationRow } from '../storage/activation/find.ts'
import { inTransaction, type Tx } from '../storage/database/database.ts'
import {
  hasOperationNonce,
  insertOperationNonce,
  type LockedOperation,
  type OperationRow,
} from '../storage/operation/operations.ts'
import {
  isOf,
  type OperationParts,
  readOperation,
  refuseUnlessPending,
  stateErrorOf,
  statusAt,
  takeOtpAttempt,
} from '../domain/operation/operation.ts'
import { noActiveRegistration } from '../domain/activation/registration.ts'
import { countFailure, endByDecision, flagRefusalOf } from '../domain/operation/decision.ts'
import { QR_BYTES_MAX, renderQrTexts } from '../domain/operation/form.ts'
import { listProximityOtps } from '../domain/operation/proximity.ts'
import { chooseTexts } from '../domain/template/template.ts'
import { parseOfflineOtp } from '../protocol/wire/offline.ts'
import type { ChannelParts } from './parts.ts'
import { findPhoneById, judgeOtp, type OtpDecision, signForActivation } from './authenticate-offline.ts'

/** The id of the operation. If its user has several phones, also that of the registration. */
interface OfflineNames {
  readonly operationId: string
  readonly registrationId?: string | undefined
}

/**
 * Makes a QR code for an approval, with a fresh nonce (Base64 of 16 bytes). Throws OPERATION_NOT_FOUND, also when the seed of the proximity check or
 * the texts were altered in the database; REGISTRATION_NOT_FOUND when the user has no ACTIVE registration, or not the named one; the code of the
 * operation's state; REQUEST_INVALID when the operation is too long for a QR code, or the user has several ACTIVE registrations and none is named.
 */
export async function createOfflineQr(
  parts: ChannelParts & OperationParts,
  applicationId: string,
  { operationId, registrationId }: OfflineNames,
): Promise<{ readonly operationQrCodeData: string; readonly nonce: string }> {
  const operation = await readOperation(parts, applicationId, operationId)
  const activation = await findApprover(parts, operation, registrationId)
  refuseUnlessPending(operation.status)
  const nonce = toBase64(parts.platform.randomBytes(NONCE_BYTES))
  const stored = (await parts.templateTexts([operation.templateRevisionId])).get(operation.templateRevisionId)
  if (stored === undefined) throw new PawlError('OPERATION_NOT_FOUND', { detail: 'its texts were altered' })
  const { texts } = chooseTexts(stored, [operation.language])
  const { title, message } = renderQrTexts(texts, operation.parameters)
  const flags = `${isBiometryAllowed(operation) ? 'B' : ''}${operation.riskFlags}`
  const data = [operationId, title, message, operation.data, flags].join('\n')
  const totp = listProximityOtps(parts, operation)?.[0]
  // Without the seed every password would be wrong, and each wrong one counts.
  if (totp === undefined && operation.proximitySeed !== null)
    throw new PawlError('OPERATION_NOT_FOUND', { detail: 'the seed of its proximity check was altered' })
  const operationQrCodeData = signForActivation(parts, activation, { data, totp, nonceBase64: nonce })
  if (operationQrCodeData === undefined) throw new PawlError('REGISTRATION_NOT_FOUND', { detail: 'no keys to sign for' })
  const { length } = utf8(operationQrCodeData)
  if (length > QR_BYTES_MAX) {
    const hint = `must be of an operation that fits into a QR code: this one has ${length} bytes, and at most ${QR_BYTES_MAX} fit`
    throw requestRefused('operationId', hint)
  }
  await insertOperationNonce(parts.db, operationId, nonce, new Date(parts.platform.now()), LIVE_NONCES)
  return { operationQrCodeData, nonce }
}

/**
 * Approves an operation by a one-time password. Throws OTP_INVALID for a wrong password, which counts for operation and activation; for a foreign
 * nonce, which counts for the operation; and, without counting, for a malformed password, and when the flags of the activation forbid the approval.
 * Where the operation has ended, any password gets the error code of its state. Otherwise it throws the errors of createOfflineQr.
 */
export async function approveOffline(
  parts: ChannelParts & OperationParts,
  applicationId: string,
  request: OfflineNames & { readonly otp: string; readonly nonce: string },
): Promise<void> {
  const { operationId, registrationId, nonce } = request
  const otp = parseOfflineOtp(request.otp)
  // A malformed password is not a guess, so nothing is counted.
  if (otp === undefined) throw new PawlError('OTP_INVALID', { detail: 'not the form of a one-time password' })
  const operation = await readOperation(parts, applicationId, operationId)
  const activation = await findApprover(parts, operation, registrationId)
  refuseUnlessPending(operation.status)
  const at = new Date(parts.platform.now())
  takeOtpAttempt(parts, operation.applicationId, activation.activationId)
  if (!(await hasOperationNonce(parts.db, operationId, nonce, LIVE_NONCES))) {
    const status = await countFailure(parts.db, parts, operation, activation, at)
    // Nonces end with their operation, which another request may have ended since the read.
    if (status === undefined) refuseUnlessPending((await readOperation(parts, applicationId, operationId)).status)
    throw new PawlError('OTP_INVALID', { detail: 'the nonce was not issued for the operation' })
  }
  const attempt = {
    operationId,
    operationData: operation.data,
    nonceBase64: nonce,
    otp,
    isBiometryAllowed: isBiometryAllowed(operation),
    totps: listProximityOtps(parts, operation),
  }
  const refusal = await untilSettled('activation', async (round) => {
    const current = round === 0 ? activation : await findPhoneById(parts, activation.activationId)
    if (current?.state !== 'ACTIVE') throw noActiveRegistration()
    const decision = await judgeOtp(parts, current, attempt)
    if (decision === undefined) return undefined
    const decided = await inTransaction(parts.db, async (tx) => {
      const stored = await decision.store(tx)
      return stored && (await decideOffline(tx, parts, stored.operation, activation, decision, at))
    })
    if (decided !== undefined) decision.note()
    return decided
  })
  if (refusal !== 'NONE') throw refusal
}

/** Applies a judged password to the locked operation, in the transaction that stores the judgement. */
async function decideOffline(
  tx: Tx,
  parts: OperationParts,
  operation: LockedOperation | undefined,
  activation: ActivationRow,
  { isRight, factors }: OtpDecision,
  at: Date,
): Promise<PawlError | 'NONE'> {
  if (operation === undefined) return notAccepted('OPERATION_NOT_FOUND')
  const ended = stateErrorOf(statusAt(operation, at.getTime()))
  // Another request may have ended the operation with this password, which is no longer right then.
  if (ended !== undefined) return ended
  if (!isRight) {
    await countFailure(tx, parts, operation, activation, at)
    return notAccepted('OTP_INVALID')
  }
  // This API has no error codes for flags. Nothing is counted, as for online approvals.
  if (flagRefusalOf(operation) !== undefined) return notAccepted('OTP_INVALID')
  const additionalData = { authFactor: factors, isOffline: true }
  await endByDecision(tx, parts, operation, activation, { to: 'APPROVED', statusReason: null, additionalData, at })
  return 'NONE'
}

const notAccepted = (code: ErrorCode): PawlError => new PawlError(code, { detail: 'the one-time password was not accepted' })

/**
 * Finds the ACTIVE activation of a user, or the one with `registrationId`. Throws REGISTRATION_NOT_FOUND if there is none, and REQUEST_INVALID,
 * which names `member`, if the user has several and none is named.
 */
export async function findPhone(
  parts: Pick<ChannelParts, 'db' | 'platform' | 'authenticationStore'>,
  { applicationId, userId }: Pick<OperationRow, 'applicationId' | 'userId'>,
  registrationId: string | undefined,
  member: string,
): Promise<ReadActivationRow> {
  const at = new Date(parts.platform.now())
  const registrations = userId === null ? [] : await findRegistrations(parts.db, applicationId, userId, at, registrationId)
  const [one, ...others] = registrations.filter(({ state }) => state === 'ACTIVE')
  if (others.length > 0) throw unnamedDevice(member)
  const activation = one && (await findPhoneById(parts, one.activationId))
  if (activation?.state !== 'ACTIVE') throw noActiveRegistration()
  return activation
}

/** Finds the phone that approves an operation: the phone that the operation names, else that of its user. */
async function findApprover(parts: ChannelParts, operation: OperationRow, named: string | undefined): Promise<ReadActivationRow> {
  const activation = await findPhone(parts, operation, named ?? operation.activationId ?? undefined, 'registrationId')
  if (!isOf(operation, activation))
    throw refused('REGISTRATION_NOT_FOUND', 'registration', 'must be the one that the operation is for')
  return activation
}

const unnamedDevice = (fieldName: string): PawlError =>
  requestRefused(fieldName, 'must be there: the user has several active registrations, and one phone makes the password')

const isBiometryAllowed = ({ signatureTypes }: OperationRow): boolean => signatureTypes.includes('possession_biometry')

const NONCE_BYTES = 16
const LIVE_NONCES = 10
