// Creates an operation (cloud §6): fills its template, stores it once for each idempotency key, and logs texts with missing parameters.
import { sha256 } from '../../crypto/hash.ts'
import { utf8 } from '../../lib/bytes.ts'
import { PawlError, requestRefused } from '../../lib/errors.ts'
import { findRegistrations, type OwnerNames } from '../../storage/activation/find.ts'
import { findDefaultApplicationId } from '../../storage/application/applications.ts'
import { type Db, inTransaction } from '../../storage/database/database.ts'
import { findIdempotencyKey, type KnownKey, takeIdempotencyKey } from '../../storage/operation/idempotency-keys.ts'
import { findOperation, insertOperation, type NewOperation, type OperationRow } from '../../storage/operation/operations.ts'
import type { TemplateRow } from '../../storage/template/templates.ts'
import { noActiveRegistration, type Owner } from '../activation/registration.ts'
import { composeEventData } from '../audit/audit.ts'
import { composeOperationData } from '../template/operation-data.ts'
import { chooseTexts, fillText, readTexts, type TemplateTexts } from '../template/template.ts'
import { renderOperationForm } from './form.ts'
import type { OperationParts } from './operation.ts'
import { createProximitySeed } from './proximity.ts'

export interface OperationRequest {
  readonly template: string
  /** Two lower case letters. */
  readonly language: string
  readonly externalId: string | null
  readonly parameters: Readonly<Record<string, string>>
  /** Only this activation sees and decides the operation. */
  readonly activationId?: string | undefined
  /** The flag that an activation must have to approve the operation. */
  readonly activationFlag?: string | undefined
  /** The end of the operation, in place of the template's. */
  readonly expiresAt?: Date | undefined
  /** User name of the credential that asks. */
  readonly username: string
  /** When it is given, the same request of the same caller within a day gets the operation of the first request. */
  readonly idempotencyKey?: string | undefined
}

/** The user who is to decide, in the application of the caller. Null stands for the first user who claims the operation. */
export interface Asked extends Pick<OwnerNames, 'applicationId'> {
  readonly userId: string | null
}

/**
 * Creates a PENDING operation. Undefined when the application does not exist. Throws REGISTRATION_NOT_FOUND when the user has no ACTIVE
 * registration, or the named activation is not the user's. Throws REQUEST_INVALID for an unknown template, for parameters that do not fit it, for
 * another flag than the template's, for an end in the past, and for an idempotency key that was used with another request.
 */
export async function createOperation(
  parts: OperationParts,
  named: Asked,
  request: OperationRequest,
): Promise<OperationRow | undefined> {
  const filled = await fillTemplate(parts, request)
  if (filled instanceof PawlError) return (await findFirst(parts, named, request)) ?? refuse(parts, named, filled)
  const operation = buildOperation(parts, named, request, filled)
  const stored = await storeOnce(parts, named, request, operation)
  if (stored === undefined || stored.operationId !== operation.operationId) return stored
  parts.events.operationCreated({ operationId: operation.operationId })
  warnOfGaps(parts, filled.texts, operation)
  return stored
}

interface FilledTemplate {
  readonly template: TemplateRow
  readonly texts: TemplateTexts
  /** The operation data with parameters filled in. */
  readonly data: string
}

/** Fills the template. Returns the error REQUEST_INVALID, with the reasons, when the request does not fit the template. */
async function fillTemplate(parts: OperationParts, request: OperationRequest): Promise<FilledTemplate | PawlError> {
  const template = await parts.templates.find(request.template)
  const texts = template && readTexts(template.texts)
  // No phone would show an operation without texts.
  const composed = template && texts && composeOperationData(template.dataTemplate, request.parameters)
  if (template && texts && composed && 'data' in composed)
    return checkFlag(template, request) ?? { template, texts, data: composed.data }
  const name = request.template.slice(0, 128)
  const hint = template ? `the texts of the template ${name} cannot be read: store it again` : `there is no template ${name}`
  const unknown = { fieldName: 'template', invalidValue: name, hint }
  return new PawlError('REQUEST_INVALID', {
    detail: 'the operation does not fit its template',
    violations: composed && 'violations' in composed ? composed.violations : [unknown],
  })
}

/** Refuses a flag other than the template's: the column has room for one flag, and the template's must be demanded. */
function checkFlag(template: TemplateRow, { activationFlag }: OperationRequest): PawlError | undefined {
  if (activationFlag === undefined || template.activationFlag === null || template.activationFlag === activationFlag)
    return undefined
  return requestRefused('applicationFlag', 'must be the flag that the template demands', activationFlag)
}

/** Throws `refusal`, or the error for a missing registration if the user has none. Undefined when the application does not exist. */
async function refuse(
  { db, platform }: Pick<OperationParts, 'platform'> & { readonly db: Db },
  named: Asked,
  refusal: PawlError,
): Promise<undefined> {
  const applicationId = await findApplicationId(db, named)
  if (applicationId === undefined) return undefined
  if (named.userId === null) throw refusal
  const registrations = await findRegistrations(db, applicationId, named.userId, new Date(platform.now()))
  throw registrations.some(({ state }) => state === 'ACTIVE') ? refusal : noActiveRegistration()
}

const findApplicationId = async (db: Db, { applicationId }: Asked): Promise<string | undefined> =>
  applicationId ?? findDefaultApplicationId(db)

function buildOperation(
  parts: OperationParts,
  named: Asked,
  { externalId, language, parameters, activationId, activationFlag, expiresAt }: OperationRequest,
  { template, data }: FilledTemplate,
): NewOperation {
  const operationId = parts.platform.uuid()
  const createdAt = new Date(parts.platform.now())
  return {
    operationId,
    ...named,
    externalId,
    templateRevisionId: template.templateRevisionId,
    templateName: template.templateName,
    operationType: template.operationType,
    language,
    parameters,
    data,
    signatureTypes: template.signatureTypes.split(','),
    maxFailureCount: template.maxFailureCount,
    riskFlags: template.riskFlags,
    activationFlag: template.activationFlag ?? activationFlag ?? null,
    activationId: activationId ?? null,
    proximitySeed: template.isProximityCheckEnabled ? createProximitySeed(parts, operationId) : null,
    createdAt,
    expiresAt: expiresAt ?? new Date(createdAt.getTime() + template.expirationSeconds * 1000),
  }
}

/** Stores the operation, or reads the first one if the idempotency key was used before. Undefined when the application does not exist. */
async function storeOnce(
  parts: OperationParts,
  named: Asked,
  request: OperationRequest,
  operation: NewOperation,
): Promise<OperationRow | undefined> {
  const { db } = parts
  const { username, idempotencyKey } = request
  if (idempotencyKey === undefined) {
    const stored = await store(parts, operation, username)
    if (stored === undefined && (await findApplicationId(db, named)) !== undefined) throw noActiveRegistration()
    return stored
  }
  const applicationId = await findApplicationId(db, named)
  if (applicationId === undefined) return undefined
  const owner = { ...named, applicationId }
  const key = { username, key: idempotencyKey, bodyHash: hashRequest(owner, request) }
  const { operationId, createdAt } = operation
  const keepUntil = new Date(createdAt.getTime() + IDEMPOTENCY_MS)
  const outcome = await inTransaction(db, async (tx) => {
    const known = await takeIdempotencyKey(tx, key, operationId, createdAt, keepUntil)
    if (known !== undefined) return { known }
    const stored = await store({ ...parts, db: tx }, { ...operation, applicationId }, username)
    // The error rolls the transaction back, so the key is free again.
    if (stored === undefined) throw noActiveRegistration()
    return { stored }
  })
  return outcome.stored ?? readFirst(db, owner, outcome.known, key.bodyHash)
}

/**
 * Stores the operation. Undefined when the user has no ACTIVE registration. An end in the past is refused only here: it may have been in the future
 * when the first request with this idempotency key came.
 */
async function store(
  parts: Pick<OperationParts, 'platform'> & { readonly db: Db },
  operation: NewOperation,
  username: string,
): Promise<OperationRow | undefined> {
  const { expiresAt } = operation
  if (expiresAt <= operation.createdAt)
    return refuse(parts, operation, requestRefused('expiresAt', 'must be in the future', String(expiresAt.getTime())))
  const applicationId = await insertOperation(parts.db, operation, { ...createdEventOf(operation), verifiedBy: username })
  return applicationId === undefined
    ? undefined
    : { ...operation, applicationId, status: 'PENDING', statusReason: null, failureCount: 0 }
}

/** Reads the first answer to the same request. This comes before the template is read, because the template may have changed or be deleted. */
async function findFirst(
  { db, platform }: Pick<OperationParts, 'db' | 'platform'>,
  named: Asked,
  request: OperationRequest,
): Promise<OperationRow | undefined> {
  const { username, idempotencyKey: key } = request
  if (key === undefined) return undefined
  const applicationId = await findApplicationId(db, named)
  if (applicationId === undefined) return undefined
  const known = await findIdempotencyKey(db, username, key)
  const owner = { ...named, applicationId }
  const bodyHash = hashRequest(owner, request)
  const isSame = known !== undefined && known.expiresAt.getTime() > platform.now() && known.bodyHash.equals(bodyHash)
  return isSame ? readFirst(db, owner, known, bodyHash) : undefined
}

/** Reads the first answer, whatever happened to the operation since. */
async function readFirst(
  db: Db,
  { applicationId, userId }: Asked & Pick<Owner, 'applicationId'>,
  known: KnownKey,
  bodyHash: Uint8Array,
): Promise<OperationRow> {
  const first = await findOperation(db, applicationId, known.operationId)
  if (first === undefined || !known.bodyHash.equals(bodyHash))
    throw requestRefused('Idempotency-Key', 'was used with another request')
  return { ...first, userId, status: 'PENDING', failureCount: 0 }
}

const createdEventOf = ({ operationId, templateName: template, operationType }: NewOperation) => ({
  eventType: 'operation_created',
  eventData: composeEventData({ operationId, template, operationType }),
})

/** Logs placeholders without a parameter, which become empty text. Logs screens that phones would refuse, and that are therefore left out. */
function warnOfGaps(
  { events }: OperationParts,
  texts: TemplateTexts,
  { operationId, templateName, language, parameters, riskFlags }: NewOperation,
): void {
  const chosen = chooseTexts(texts, [language])
  const { missing } = fillText(`${chosen.texts.title}\n${chosen.texts.message}`, parameters)
  if (missing.length > 0) events.placeholdersMissing({ operationId, template: templateName, names: missing.join(', ') })
  if (chosen.texts.ui === undefined) return
  const { leftOut } = renderOperationForm({ ...chosen, parameters, riskFlags, hasProximityCheck: true })
  if (leftOut.length > 0) events.screensLeftOut({ operationId, template: templateName, members: leftOut.join(', ') })
}

/** The hash by which two requests count as the same, 32 bytes. It covers every member that enters the operation. */
function hashRequest({ applicationId, userId }: Asked, request: OperationRequest): Uint8Array {
  const { template, language, externalId, parameters, activationId, activationFlag, expiresAt } = request
  const sorted = Object.entries(parameters).toSorted(([a], [b]) => (a < b ? -1 : 1))
  // A request without limits has the same text as in older versions, which may have answered it first.
  const limits = { activationId, activationFlag, expiresAt: expiresAt?.getTime() }
  const isLimited = Object.values(limits).some((value) => value !== undefined)
  const members = [applicationId, userId, template, language, externalId, sorted, ...(isLimited ? [limits] : [])]
  return sha256(utf8(JSON.stringify(members)))
}

const IDEMPOTENCY_MS = 24 * 60 * 60 * 1000
