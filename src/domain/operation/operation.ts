// An operation from its creation to its end: what a user is asked to approve, and who may move it (cloud §6).
import { sha256 } from '../../crypto/hash.ts'
import { utf8 } from '../../lib/bytes.ts'
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import type { Events } from '../../lib/events.ts'
import type { Platform } from '../../lib/platform.ts'
import { findLatestActivationId, findRegistration } from '../../storage/activation/find.ts'
import { insertAuditEvent } from '../../storage/audit.ts'
import { inTransaction, type Pool } from '../../storage/database.ts'
import { takeIdempotencyKey } from '../../storage/idempotency-keys.ts'
import { endOperation, findOperation, insertOperation, type NewOperation, type OperationRow } from '../../storage/operations.ts'
import type { OperationStatus } from '../../storage/schema.ts'
import type { TemplateRow } from '../../storage/templates.ts'
import { createAuditEvent, createAuditEventOf } from '../audit/audit.ts'
import { composeOperationData } from '../template/operation-data.ts'
import { renderOperationForm } from './form.ts'
import { createProximitySeed } from './proximity.ts'
import type { RecordKeys } from '../secrets/record-keys.ts'
import type { Owner } from '../activation/registration.ts'
import { chooseTexts, fillText, type TemplateTexts } from '../template/template.ts'
import type { TemplateReader } from '../template/reader.ts'

export interface OperationParts {
  readonly db: Pool
  readonly platform: Platform
  readonly recordKeys: RecordKeys
  readonly templates: TemplateReader
  readonly events: Events
}

export interface OperationRequest {
  readonly template: string
  /** Two lower case letters. */
  readonly language: string
  readonly externalId: string | null
  readonly parameters: Readonly<Record<string, string>>
  /** With it, the same request from the same caller within a day gives the operation of the first time. */
  readonly idempotency?: { readonly username: string; readonly key: string } | undefined
}

/**
 * Creates a PENDING operation. Throws REGISTRATION_NOT_FOUND when the user has no ACTIVE registration, REQUEST_INVALID for an unknown
 * template, for parameters that do not fit it, and for an idempotency key that was used with another request.
 */
export async function createOperation(parts: OperationParts, owner: Owner, request: OperationRequest): Promise<OperationRow> {
  const { platform } = parts
  const template = await parts.templates.find(request.template)
  const composed = template && composeOperationData(template.dataTemplate, request.parameters)
  if (template === undefined || composed === undefined || 'violations' in composed) {
    // A user without registration is refused first, whatever templates there are.
    const registration = await findRegistration(parts.db, owner.applicationId, owner.userId, new Date(platform.now()))
    if (registration?.state !== 'ACTIVE') throw noRegistration()
    const unknown = { fieldName: 'template', invalidValue: request.template.slice(0, 128), hint: 'is no template' }
    const violations = composed && 'violations' in composed ? composed.violations : [unknown]
    throw new PawlError('REQUEST_INVALID', { detail: 'the operation does not fit its template', violations })
  }
  const operationId = platform.uuid()
  const createdAt = new Date(platform.now())
  const operation: NewOperation = {
    operationId,
    ...owner,
    externalId: request.externalId,
    templateRevisionId: template.templateRevisionId,
    templateName: template.templateName,
    operationType: template.operationType,
    language: request.language,
    parameters: request.parameters,
    data: composed.data,
    status: 'PENDING',
    statusReason: null,
    signatureTypes: template.signatureTypes.split(','),
    failureCount: 0,
    maxFailureCount: template.maxFailureCount,
    riskFlags: template.riskFlags,
    activationFlag: template.activationFlag,
    proximitySeed: template.isProximityCheckEnabled ? createProximitySeed(parts, operationId) : null,
    createdAt,
    expiresAt: new Date(createdAt.getTime() + template.expirationSeconds * 1000),
  }
  const { idempotency } = request
  if (idempotency === undefined) {
    if (!(await insertOperation(parts.db, operation, createdEventOf(operation)))) throw noRegistration()
    warnOfGaps(parts, template, operation)
    return operation
  }
  const key = { ...idempotency, bodyHash: hashRequest(owner, request) }
  const known = await inTransaction(parts.db, async (tx) => {
    const keepUntil = new Date(createdAt.getTime() + IDEMPOTENCY_MS)
    const taken = await takeIdempotencyKey(tx, key, operationId, createdAt, keepUntil)
    // A throw gives the key back.
    if (taken === undefined && !(await insertOperation(tx, operation, createdEventOf(operation)))) throw noRegistration()
    return taken
  })
  if (known === undefined) {
    warnOfGaps(parts, template, operation)
    return operation
  }
  const first = await findOperation(parts.db, owner.applicationId, known.operationId)
  if (first === undefined || !known.bodyHash.equals(key.bodyHash)) {
    const violations = [{ fieldName: 'Idempotency-Key', hint: 'was used with another request' }]
    throw new PawlError('REQUEST_INVALID', { detail: 'an idempotency key of another request', violations })
  }
  // The first answer, whatever has happened since.
  return { ...first, status: 'PENDING', failureCount: 0 }
}

/** The operation as it is now: one past its time is EXPIRED, whether or not that is stored. Throws OPERATION_NOT_FOUND. */
export async function readOperation(parts: OperationParts, applicationId: string, operationId: string): Promise<OperationRow> {
  const row = await findOperation(parts.db, applicationId, operationId)
  if (row === undefined) throw new PawlError('OPERATION_NOT_FOUND')
  return { ...row, status: statusAt(row, parts.platform.now()) }
}

/** PENDING to CANCELED. Throws OPERATION_NOT_FOUND, or the code of the state it has reached. */
export async function cancelOperation(
  parts: OperationParts,
  applicationId: string,
  operationId: string,
  statusReason: string | null,
): Promise<void> {
  const { status } = await readOperation(parts, applicationId, operationId)
  refuseUnlessPending(status)
  const at = new Date(parts.platform.now())
  const isCanceled = await inTransaction(parts.db, async (tx) => {
    if (!(await endOperation(tx, { operationId, to: 'CANCELED', statusReason, additionalData: null, at }))) return false
    // The audit log is about users and their devices: an operation that nobody has claimed is in no user's log.
    const userId = (await findOperation(tx, applicationId, operationId))?.userId ?? undefined
    const activationId = userId && (await findLatestActivationId(tx, applicationId, userId))
    if (userId === undefined || activationId === undefined) return true
    const owner = { applicationId, userId, activationId }
    await insertAuditEvent(tx, createAuditEvent(owner, 'operation_canceled', { operationId, reason: statusReason }, at.getTime()))
    return true
  })
  if (isCanceled) return
  // Somebody was faster; a final state does not change any more.
  refuseUnlessPending((await readOperation(parts, applicationId, operationId)).status)
}

/** The status at a time (ms). */
export const statusAt = ({ status, expiresAt }: Pick<OperationRow, 'status' | 'expiresAt'>, now: number): OperationStatus =>
  status === 'PENDING' && expiresAt.getTime() <= now ? 'EXPIRED' : status

/** How an operation that is not PENDING is refused. */
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

const createdEventOf = ({ operationId, templateName: template, operationType, createdAt, ...owner }: NewOperation) =>
  createAuditEventOf(owner, 'operation_created', { operationId, template, operationType }, createdAt.getTime())

/**
 * A text shows nothing for a placeholder without parameter, and a phone gets no screen that it would refuse. The log tells those who wrote
 * the template.
 */
function warnOfGaps(
  { events }: OperationParts,
  template: TemplateRow,
  { operationId, language, parameters, riskFlags }: NewOperation,
): void {
  const chosen = chooseTexts(JSON.parse(template.texts) as TemplateTexts, [language])
  const { missing } = fillText(`${chosen.texts.title}\n${chosen.texts.message}`, parameters)
  const { templateName } = template
  if (missing.length > 0) events.placeholdersMissing({ operationId, template: templateName, names: missing.join(', ') })
  if (chosen.texts.ui === undefined) return
  const { leftOut } = renderOperationForm({ ...chosen, parameters, riskFlags, hasProximityCheck: true })
  if (leftOut.length > 0) events.screensLeftOut({ operationId, template: templateName, members: leftOut.join(', ') })
}

const noRegistration = (): PawlError => new PawlError('REGISTRATION_NOT_FOUND', { detail: 'the user has no active registration' })

/** What makes two requests the same: every member that enters the operation. */
function hashRequest(owner: Owner, { template, language, externalId, parameters }: OperationRequest): Uint8Array {
  const sorted = Object.entries(parameters).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return sha256(utf8(JSON.stringify([owner.applicationId, owner.userId, template, language, externalId, sorted])))
}

const IDEMPOTENCY_MS = 24 * 60 * 60 * 1000
