// A new operation: its template is filled, it is stored, once for each idempotency key, and gaps are told to the log (cloud §6).
import { sha256 } from '../../crypto/hash.ts'
import { utf8 } from '../../lib/bytes.ts'
import { PawlError } from '../../lib/errors.ts'
import { findRegistration } from '../../storage/activation/find.ts'
import { type Db, inTransaction } from '../../storage/database.ts'
import { type KnownKey, takeIdempotencyKey } from '../../storage/idempotency-keys.ts'
import { findOperation, insertOperation, type NewOperation, type OperationRow } from '../../storage/operations.ts'
import type { TemplateRow } from '../../storage/templates.ts'
import type { Owner } from '../activation/registration.ts'
import { createAuditEventOf } from '../audit/audit.ts'
import { composeOperationData } from '../template/operation-data.ts'
import { chooseTexts, fillText, type TemplateTexts } from '../template/template.ts'
import { renderOperationForm } from './form.ts'
import type { OperationParts } from './operation.ts'
import { createProximitySeed } from './proximity.ts'

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
  const filled = await fillTemplate(parts, owner, request)
  const operation = buildOperation(parts, owner, request, filled)
  const first = await storeOnce(parts, owner, request, operation)
  if (first !== undefined) return first
  parts.events.operationCreated({ operationId: operation.operationId })
  warnOfGaps(parts, filled.template, operation)
  return operation
}

interface FilledTemplate {
  readonly template: TemplateRow
  /** Operation data with the parameters in their places. */
  readonly data: string
}

async function fillTemplate(parts: OperationParts, owner: Owner, request: OperationRequest): Promise<FilledTemplate> {
  const template = await parts.templates.find(request.template)
  const composed = template && composeOperationData(template.dataTemplate, request.parameters)
  if (template !== undefined && composed !== undefined && 'data' in composed) return { template, data: composed.data }
  // A user without registration is refused first, whatever templates there are.
  const registration = await findRegistration(parts.db, owner.applicationId, owner.userId, new Date(parts.platform.now()))
  if (registration?.state !== 'ACTIVE') throw noRegistration()
  const unknown = { fieldName: 'template', invalidValue: request.template.slice(0, 128), hint: 'is no template' }
  throw new PawlError('REQUEST_INVALID', {
    detail: 'the operation does not fit its template',
    violations: composed && 'violations' in composed ? composed.violations : [unknown],
  })
}

function buildOperation(
  parts: OperationParts,
  owner: Owner,
  { externalId, language, parameters }: OperationRequest,
  { template, data }: FilledTemplate,
): NewOperation {
  const operationId = parts.platform.uuid()
  const createdAt = new Date(parts.platform.now())
  return {
    operationId,
    ...owner,
    externalId,
    templateRevisionId: template.templateRevisionId,
    templateName: template.templateName,
    operationType: template.operationType,
    language,
    parameters,
    data,
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
}

/** Stores the operation; gives the one of the first time instead, when the request has an idempotency key that was used before. */
async function storeOnce(
  { db }: OperationParts,
  owner: Owner,
  request: OperationRequest,
  operation: NewOperation,
): Promise<OperationRow | undefined> {
  if (request.idempotency === undefined) {
    await store(db, operation)
    return undefined
  }
  const key = { ...request.idempotency, bodyHash: hashRequest(owner, request) }
  const { operationId, createdAt } = operation
  const known = await inTransaction(db, async (tx) => {
    const keepUntil = new Date(createdAt.getTime() + IDEMPOTENCY_MS)
    const taken = await takeIdempotencyKey(tx, key, operationId, createdAt, keepUntil)
    // A throw gives the key back.
    if (taken === undefined) await store(tx, operation)
    return taken
  })
  return known && readFirst(db, owner, known, key.bodyHash)
}

async function store(db: Db, operation: NewOperation): Promise<void> {
  if (!(await insertOperation(db, operation, createdEventOf(operation)))) throw noRegistration()
}

/** The first answer, whatever has happened since. */
async function readFirst(db: Db, { applicationId }: Owner, known: KnownKey, bodyHash: Uint8Array): Promise<OperationRow> {
  const first = await findOperation(db, applicationId, known.operationId)
  if (first === undefined || !known.bodyHash.equals(bodyHash)) {
    const violations = [{ fieldName: 'Idempotency-Key', hint: 'was used with another request' }]
    throw new PawlError('REQUEST_INVALID', { detail: 'an idempotency key of another request', violations })
  }
  return { ...first, status: 'PENDING', failureCount: 0 }
}

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
