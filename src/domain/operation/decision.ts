// Applies a phone's answer to an operation, inside the transaction that checked the phone and locked the operation (mobile-token §4.5,
// §4.6; cloud §6.2).
//
// An operation of another user or application, or for another phone alone, is answered like an unknown one and never changed. So a caller who
// learned the id of an operation can neither use up its attempts nor learn its state.
import type { ErrorCode } from '../../lib/errors.ts'
import type { Db, Tx } from '../../storage/database/database.ts'
import type { ActivationRow, OwnedActivation } from '../../storage/activation/find.ts'
import { claimOperation, countOperationFailure, endOperation } from '../../storage/operation/transitions.ts'
import type { LockedOperation, OperationRow } from '../../storage/operation/operations.ts'
import type { OperationStatus } from '../../storage/database/schema.ts'
import { isUnverified } from '../activation/transfer.ts'
import { createAuditEvent } from '../audit/audit.ts'
import { isOf, isShownTo, refusalOf, statusAt } from './operation.ts'
import { isNear } from './proximity.ts'
import type { DomainParts } from '../secrets/secrets.ts'

/** The values of an approval. */
export interface Approval {
  readonly data: string
  /** The factors in lower case, for example possession_knowledge. */
  readonly factors: string
  readonly proximityOtp: string | undefined
  /** Members that are stored with the operation. */
  readonly additionalData: Readonly<Record<string, unknown>>
}

/** Approves a locked operation, or counts a failure. Returns undefined when the operation is now APPROVED, else the error code. */
export async function decideApproval(
  tx: Tx,
  parts: Omit<DomainParts, 'db'>,
  operation: LockedOperation | undefined,
  approver: OwnedActivation,
  approval: Approval,
): Promise<ErrorCode | undefined> {
  const at = new Date(parts.platform.now())
  if (operation === undefined || !isOf(operation, approver)) return 'OPERATION_NOT_FOUND'
  const refusal = refusalOf(statusAt(operation, at.getTime()))
  if (refusal !== undefined) return refusal
  const forbidden = flagRefusalOf(operation)
  if (forbidden !== undefined) return forbidden
  const isAcceptable =
    approval.data === operation.data &&
    operation.signatureTypes.includes(approval.factors) &&
    isNear(parts, operation, approval.proximityOtp)
  if (!isAcceptable)
    return (await countFailure(tx, parts, operation, approver, at)) === 'FAILED' ? 'OPERATION_FAILED' : 'APPROVAL_REFUSED'
  await endByDecision(tx, parts, operation, approver, {
    to: 'APPROVED',
    statusReason: null,
    additionalData: approval.additionalData,
    at,
  })
  return undefined
}

/** Returns the error code if the flags of the approver's activation forbid an approval, online or offline; else undefined. */
export function flagRefusalOf({
  activationFlag,
  approverFlags,
}: Pick<LockedOperation, 'activationFlag' | 'approverFlags'>): ErrorCode | undefined {
  if (isUnverified(approverFlags)) return 'AUTHENTICATION_CODE_INVALID'
  return activationFlag !== null && !approverFlags.includes(activationFlag) ? 'ACTIVATION_FLAG_MISSING' : undefined
}

/** Counts a wrong code for the locked operation if it belongs to the approver. Returns OPERATION_FAILED when this was the last attempt. */
export async function countWrongCode(
  tx: Tx,
  parts: Omit<DomainParts, 'db'>,
  operation: LockedOperation | undefined,
  approver: OwnedActivation,
): Promise<ErrorCode | undefined> {
  if (operation === undefined || !isOf(operation, approver)) return undefined
  const status = await countFailure(tx, parts, operation, approver, new Date(parts.platform.now()))
  return status === 'FAILED' ? 'OPERATION_FAILED' : undefined
}

/** Rejects a locked PENDING operation. Returns undefined when it is now REJECTED, else the error code. A refused rejection is never counted. */
export async function decideRejection(
  tx: Tx,
  parts: Omit<DomainParts, 'db'>,
  operation: LockedOperation | undefined,
  approver: OwnedActivation,
  rejection: {
    readonly reason: string | undefined
    readonly additionalData: Readonly<Record<string, unknown>>
  },
): Promise<ErrorCode | undefined> {
  const at = new Date(parts.platform.now())
  if (operation === undefined || !isOf(operation, approver)) return 'OPERATION_NOT_FOUND'
  const refusal = refusalOf(statusAt(operation, at.getTime()))
  if (refusal !== undefined) return refusal
  const { reason } = rejection
  const additionalData = { ...rejection.additionalData, ...(reason !== undefined && { rejectReason: reason }) }
  const statusReason = reason !== undefined && reason.length <= STATUS_REASON_MAX ? reason : null
  await endByDecision(tx, parts, operation, approver, { to: 'REJECTED', statusReason, additionalData, at })
  return undefined
}

/**
 * Gives a locked operation that nobody has claimed to the user of a phone, if that phone could approve it. Returns undefined when it now belongs to
 * the user, or did before, else the error code (mobile-token §4.3).
 */
export async function decideClaim(
  tx: Tx,
  { platform }: Pick<DomainParts, 'platform'>,
  operation: LockedOperation | undefined,
  approver: OwnedActivation & Pick<ActivationRow, 'isBiometryEnabled'>,
): Promise<ErrorCode | undefined> {
  const at = new Date(platform.now())
  if (operation === undefined || !isShownTo(operation, approver)) return 'OPERATION_NOT_FOUND'
  const refusal = refusalOf(statusAt(operation, at.getTime()))
  if (refusal !== undefined) return refusal
  if (operation.userId !== null) return undefined
  const forbidden = flagRefusalOf(operation)
  if (forbidden !== undefined) return forbidden
  const needsBiometry = operation.signatureTypes.every((factors) => factors === 'possession_biometry')
  if (needsBiometry && approver.isBiometryEnabled === false) return 'OPERATION_NOT_FOUND'
  const { operationId, templateName: template, operationType } = operation
  const claim = createAuditEvent(approver, 'operation_claimed', { operationId, template, operationType }, at.getTime())
  return (await claimOperation(tx, operationId, claim)) ? undefined : 'OPERATION_NOT_FOUND'
}

/** Counts a failed attempt to approve. Returns the status after it, or undefined when the operation was no longer PENDING. */
export async function countFailure(
  db: Db,
  { events }: Pick<DomainParts, 'events'>,
  { operationId, createdAt }: Pick<OperationRow, 'operationId' | 'createdAt'>,
  approver: OwnedActivation,
  at: Date,
): Promise<OperationStatus | undefined> {
  const audit = createAuditEvent(approver, 'operation_failed', { operationId }, at.getTime())
  const status = await countOperationFailure(db, operationId, at, audit)
  if (status !== undefined) events.operationAttemptFailed({ operationId })
  if (status !== 'FAILED') return status
  events.operationEnded({ state: status, ageMs: at.getTime() - createdAt.getTime() })
  return status
}

/** Ends a locked PENDING operation by its user's decision. */
export async function endByDecision(
  tx: Tx,
  { events }: Pick<DomainParts, 'events'>,
  { operationId, createdAt }: Pick<OperationRow, 'operationId' | 'createdAt'>,
  approver: OwnedActivation,
  decision: {
    readonly to: 'APPROVED' | 'REJECTED'
    readonly statusReason: string | null
    readonly additionalData: Readonly<Record<string, unknown>>
    readonly at: Date
  },
): Promise<void> {
  const { to, statusReason, at } = decision
  const { activationId, applicationId } = approver
  const additionalData = JSON.stringify({ activationId, applicationId, ...decision.additionalData })
  const eventType = to === 'APPROVED' ? 'operation_approved' : 'operation_rejected'
  const audit = createAuditEvent(approver, eventType, { operationId, reason: statusReason }, at.getTime())
  await endOperation(tx, { operationId, to, statusReason, additionalData, at }, audit)
  events.operationEnded({ state: to, ageMs: at.getTime() - createdAt.getTime() })
}

const STATUS_REASON_MAX = 32
