// Reads and cancels operations, and judges their states (cloud §6).
import { type ErrorCode, PawlError, refused } from '../../lib/errors.ts'
import type { OwnedActivation } from '../../storage/activation/find.ts'
import { listOwnerlessItems } from '../../storage/audit/audit.ts'
import type { Pool } from '../../storage/database/database.ts'
import type { OperationStatus } from '../../storage/database/schema.ts'
import { findOperation, listOperationNotes, listOperationsOfIds, type OperationRow } from '../../storage/operation/operations.ts'
import { cancelPendingOperation } from '../../storage/operation/transitions.ts'
import { composeEventData } from '../audit/audit.ts'
import type { Window } from '../limits/window.ts'
import type { DomainParts } from '../secrets/secrets.ts'
import type { ReadTemplateTexts, TemplateReader } from '../template/reader.ts'

export interface OperationParts extends DomainParts {
  readonly db: Pool
  readonly templates: TemplateReader
  readonly templateTexts: ReadTemplateTexts
  /** Counts one-time passwords that are typed for an activation. */
  readonly otpAttempts: Window
}

/**
 * Takes one of the attempts at one-time passwords that an activation has in a minute: for an operation, for a text of the bank, and by the
 * reference's API. The application of the caller counts too, so that nobody uses up the attempts of another application. Throws TOO_MANY_REQUESTS.
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

/** Whether isOf is true, or nobody has claimed the operation and this phone may. */
export const isShownTo = (operation: Pick<OperationRow, 'userId' | 'activationId'>, approver: OwnedActivation): boolean =>
  isOf({ ...operation, userId: operation.userId ?? approver.userId }, approver)

/** Reads an operation. After its end it is EXPIRED, even if that is not stored yet. Throws OPERATION_NOT_FOUND. */
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

/** Reads the time at which an operation was decided, or at which its expiry was stored; null while it waits. */
export async function readOperationEnd({ db }: Pick<OperationParts, 'db'>, operationId: string): Promise<Date | null> {
  return (await listOperationNotes(db, [operationId])).get(operationId)?.finalizedAt ?? null
}

/** Reads the audit rows of an operation that are of no user, oldest first: who made and canceled it while nobody had claimed it. */
export const readOwnerlessRows = ({ db }: Pick<OperationParts, 'db'>, query: Parameters<typeof listOwnerlessItems>[1]) =>
  listOwnerlessItems(db, query)

/**
 * Cancels a PENDING operation. `verifiedBy`: user name of the credential that asked, for the audit row. Throws OPERATION_NOT_FOUND, or the error code
 * for a state other than PENDING.
 */
export async function cancelOperation(
  parts: OperationParts,
  applicationId: string,
  { operationId, statusReason, verifiedBy }: { operationId: string; statusReason: string | null; verifiedBy: string },
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
      verifiedBy,
      occurredAt: at,
    },
  )
  if (isCanceled) {
    parts.events.operationEnded({ state: 'CANCELED', ageMs: at.getTime() - createdAt.getTime() })
    return
  }
  // Another request has ended the operation. Its state is final now.
  refuseUnlessPending((await readOperation(parts, applicationId, operationId)).status)
}

/** The status at a time in milliseconds since 1970. */
export const statusAt = ({ status, expiresAt }: Pick<OperationRow, 'status' | 'expiresAt'>, now: number): OperationStatus =>
  status === 'PENDING' && expiresAt.getTime() <= now ? 'EXPIRED' : status

/** The error code for an operation that is not PENDING. */
export const refusalOf = (status: OperationStatus): ErrorCode | undefined => REFUSALS[status]

/** The error for an operation that is not PENDING, which names its state. */
export function stateErrorOf(status: OperationStatus): PawlError | undefined {
  const refusal = refusalOf(status)
  return refusal && refused(refusal, 'operation', `is ${status}`)
}

/** Throws the error for a state other than PENDING. */
export function refuseUnlessPending(status: OperationStatus): void {
  const error = stateErrorOf(status)
  if (error !== undefined) throw error
}

const REFUSALS = {
  PENDING: undefined,
  APPROVED: 'OPERATION_FINISHED',
  REJECTED: 'OPERATION_FINISHED',
  CANCELED: 'OPERATION_CANCELED',
  EXPIRED: 'OPERATION_EXPIRED',
  FAILED: 'OPERATION_FAILED',
} as const satisfies Record<OperationStatus, ErrorCode | undefined>

/** All error codes for states other than PENDING, for the errors that an endpoint declares. */
export const STATE_REFUSALS: readonly ErrorCode[] = [...new Set(Object.values(REFUSALS))].filter((code) => code !== undefined)
