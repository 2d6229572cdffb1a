// Operations that exist: their states, and their cancellation by the bank (cloud §6).
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import type { OwnedActivation } from '../../storage/activation/find.ts'
import type { Pool } from '../../storage/database/database.ts'
import type { OperationStatus } from '../../storage/database/schema.ts'
import { findOperation, listOperationsOfIds, type OperationRow } from '../../storage/operation/operations.ts'
import { cancelPendingOperation } from '../../storage/operation/transitions.ts'
import { composeEventData } from '../audit/audit.ts'
import type { Window } from '../limits/window.ts'
import type { DomainParts } from '../secrets/secrets.ts'
import type { ReadTemplateTexts, TemplateReader } from '../template/reader.ts'

export interface OperationParts extends DomainParts {
  readonly db: Pool
  readonly templates: TemplateReader
  readonly templateTexts: ReadTemplateTexts
  /** One-time passwords that are typed for one activation. */
  readonly otpAttempts: Window
}

/**
 * Takes one of the one-time passwords that may be typed for an activation in a minute, whether for an operation, for a bank's own text or by the
 * reference's API. With the application of the caller, so that nobody uses up the attempts of another one. Throws TOO_MANY_REQUESTS.
 */
export function takeOtpAttempt(
  { otpAttempts, platform }: Pick<OperationParts, 'otpAttempts' | 'platform'>,
  applicationId: string,
  activationId: string,
): void {
  otpAttempts.take(JSON.stringify([applicationId, activationId]), platform.monotonic())
}

/**
 * Whether an operation belongs to the user of a phone, and is not for another phone alone. To all other phones it is unknown (mobile-token §4).
 */
export const isOf = (
  { userId, activationId }: Pick<OperationRow, 'userId' | 'activationId'>,
  approver: OwnedActivation,
): boolean => userId === approver.userId && (activationId === null || activationId === approver.activationId)

/** The same, or that nobody has claimed it and this phone may. */
export const isShownTo = (operation: Pick<OperationRow, 'userId' | 'activationId'>, approver: OwnedActivation): boolean =>
  isOf({ ...operation, userId: operation.userId ?? approver.userId }, approver)

/** Reads an operation. One past its end is EXPIRED, even if that is not stored yet. Throws OPERATION_NOT_FOUND. */
export async function readOperation(parts: OperationParts, applicationId: string, operationId: string): Promise<OperationRow> {
  const row = await findOperation(parts.db, applicationId, operationId)
  if (row === undefined) throw new PawlError('OPERATION_NOT_FOUND')
  return { ...row, status: statusAt(row, parts.platform.now()) }
}

/** Reads the operations of an application with these ids; unknown ids are left out. */
export async function readOperations(
  parts: OperationParts,
  applicationId: string,
  operationIds: readonly string[],
): Promise<readonly OperationRow[]> {
  const rows = await listOperationsOfIds(parts.db, applicationId, operationIds)
  return rows.map((row) => ({ ...row, status: statusAt(row, parts.platform.now()) }))
}

/** Cancels a PENDING operation. Throws OPERATION_NOT_FOUND, or the code of the state that it has reached. */
export async function cancelOperation(
  parts: OperationParts,
  applicationId: string,
  operationId: string,
  statusReason: string | null,
): Promise<void> {
  const { status, createdAt } = await readOperation(parts, applicationId, operationId)
  refuseUnlessPending(status)
  const at = new Date(parts.platform.now())
  const isCanceled = await cancelPendingOperation(
    parts.db,
    applicationId,
    { operationId, to: 'CANCELED', statusReason, additionalData: null, at },
    {
      eventType: 'operation_canceled',
      eventData: composeEventData({ operationId, reason: statusReason }),
      occurredAt: at,
    },
  )
  if (isCanceled) {
    parts.events.operationEnded({ state: 'CANCELED', ageMs: at.getTime() - createdAt.getTime() })
    return
  }
  // Somebody was faster; a final state does not change any more.
  refuseUnlessPending((await readOperation(parts, applicationId, operationId)).status)
}

/** The status at a time (ms). */
export const statusAt = ({ status, expiresAt }: Pick<OperationRow, 'status' | 'expiresAt'>, now: number): OperationStatus =>
  status === 'PENDING' && expiresAt.getTime() <= now ? 'EXPIRED' : status

/** The error code for an operation that is not PENDING. */
export const refusalOf = (status: OperationStatus): ErrorCode | undefined => REFUSALS[status]

/** Throws the code of a state that is not PENDING. */
export function refuseUnlessPending(status: OperationStatus): void {
  const refusal = refusalOf(status)
  if (refusal !== undefined) throw new PawlError(refusal, { detail: `the operation is ${status}` })
}

const REFUSALS = {
  PENDING: undefined,
  APPROVED: 'OPERATION_FINISHED',
  REJECTED: 'OPERATION_FINISHED',
  CANCELED: 'OPERATION_CANCELED',
  EXPIRED: 'OPERATION_EXPIRED',
  FAILED: 'OPERATION_FAILED',
} as const satisfies Record<OperationStatus, ErrorCode | undefined>

/** All refusals of an operation that is not PENDING, for the errors that an endpoint declares. */
export const STATE_REFUSALS: readonly ErrorCode[] = [...new Set(Object.values(REFUSALS))].filter((code) => code !== undefined)
