// operation/create, detail, list, list/pending and cancel: handle the operations that a user is asked to approve (cloud §15.2).
import { type Static, type TObject, Type } from '@sinclair/typebox'
import { createOperation } from '../../domain/operation/create.ts'
import { cancelOperation, readOperation, STATE_REFUSALS, statusAt } from '../../domain/operation/operation.ts'
import { readProximityOtp } from '../../domain/operation/proximity.ts'
import { AnyMembers, OptionalOrNull } from '../../http/types.ts'
import { requestRefused } from '../../lib/errors.ts'
import { listOperationNotes, type OperationRow, searchOperations } from '../../storage/operation/operations.ts'
import type { AnyCloudEndpoint } from '../cloud/endpoint.ts'
import { Flag, Identifier, OperationId, readEnd, Status, StatusReason, UserId } from '../cloud/fields.ts'
import { Parameters } from '../cloud/operations.ts'
import { type Dialect, foreignApplication, type ReferenceCall, referenceEndpoint } from './endpoint.ts'
import {
  ActivationId,
  AdditionalData,
  Given,
  Iso,
  FactorNames,
  Names,
  NamesGiven,
  Optional,
  PAGE,
  placeOf,
  requireNoData,
  TimeGiven,
} from './members.ts'

const Applications = Type.Array(NamesGiven.items, { minItems: 1, maxItems: 100 })

const OperationView = ({ operationFactors }: Dialect): TObject =>
  Type.Object({
    id: Type.String(),
    userId: Type.Optional(Type.String()),
    applications: Names,
    externalId: Type.Optional(Type.String()),
    activationFlag: Type.Optional(Type.String()),
    activationId: Type.Optional(Type.String()),
    operationType: Type.String(),
    templateName: Type.String(),
    data: Type.String(),
    parameters: AnyMembers,
    status: Status,
    statusReason: Type.Optional(Type.String()),
    [operationFactors]: Type.Array(FactorNames),
    failureCount: Type.Integer(),
    maxFailureCount: Type.Integer(),
    timestampCreated: Iso,
    timestampExpires: Iso,
    timestampFinalized: Type.Optional(Iso),
    riskFlags: Type.Optional(Type.String()),
    proximityOtp: Type.Optional(Type.String()),
  }) as TObject

export const operationCreate = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'operation/create',
    operationId: 'referenceCreateOperation',
    summary: 'Asks a user to approve something',
    description:
      'With `activationId` no other phone is shown the operation or decides it. What the template decides in pawl (`proximityCheckEnabled`) is ' +
      'refused, and an `activationFlag` that is not that of a template which has one.',
    errors: ['REGISTRATION_NOT_FOUND'],
    request: Type.Object({
      userId: UserId,
      applications: Applications,
      templateName: Identifier,
      externalId: Optional,
      parameters: OptionalOrNull(Parameters),
      additionalData: AdditionalData,
      activationFlag: OptionalOrNull(Flag),
      timestampExpires: TimeGiven,
      proximityCheckEnabled: OptionalOrNull(Type.Boolean()),
      activationId: OptionalOrNull(ActivationId),
    }),
    response: OperationView(dialect),
    async handle(call) {
      const { request, parts, applicationId, caller } = call
      const { userId, applications, templateName: template, externalId = null, parameters } = request
      if (applications.some((named) => named !== applicationId)) throw foreignApplication()
      if (typeof request.proximityCheckEnabled === 'boolean')
        throw requestRefused('proximityCheckEnabled', 'is not offered: the template decides it')
      requireNoData(request.additionalData)
      const expiresAt = readEnd(parts, request.timestampExpires, 'timestampExpires')
      const limits = {
        activationId: request.activationId ?? undefined,
        activationFlag: request.activationFlag ?? undefined,
        expiresAt,
      }
      const wanted = { template, language: 'en', externalId, parameters: parameters ?? {}, ...limits, username: caller.username }
      const operation = await createOperation(parts, { applicationId, userId }, wanted)
      if (operation === undefined) throw foreignApplication()
      return await viewOperation(dialect, call, operation)
    },
  })

export const operationDetail = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'operation/detail',
    operationId: 'referenceOperation',
    summary: 'State of an operation',
    errors: ['OPERATION_NOT_FOUND'],
    request: Type.Object({ operationId: OperationId }),
    response: OperationView(dialect),
    async handle(call) {
      const { parts, applicationId, request } = call
      return await viewOperation(dialect, call, await readOperation(parts, applicationId, request.operationId))
    },
  })

const listOf =
  (path: string, operationId: string, summary: string, isPending: boolean) =>
  (dialect: Dialect): AnyCloudEndpoint =>
    referenceEndpoint(dialect, {
      path,
      operationId,
      summary,
      request: Type.Object({ userId: Given, applications: Applications, activationId: Optional, ...PAGE }),
      response: Type.Array(OperationView(dialect)),
      async handle(call) {
        const { request, parts, applicationId } = call
        if (typeof request.activationId === 'string')
          throw requestRefused('activationId', 'is not offered: operations are of a user')
        if (!request.applications.includes(applicationId)) throw foreignApplication()
        const { limit, offset } = placeOf(request)
        const pendingAt = isPending ? new Date(parts.platform.now()) : undefined
        const search = { userId: request.userId, pendingAt, limit, offset }
        return await viewOperations(dialect, call, await searchOperations(parts.db, applicationId, search))
      },
    })

export const operationList = listOf('operation/list', 'referenceListOperations', 'The operations of a user, newest first', false)

export const operationListPending = listOf(
  'operation/list/pending',
  'referenceListPendingOperations',
  'The operations of a user that wait, newest first',
  true,
)

export const operationCancel = (dialect: Dialect) =>
  referenceEndpoint(dialect, {
    path: 'operation/cancel',
    operationId: 'referenceCancelOperation',
    summary: 'Cancels an operation that waits',
    errors: ['OPERATION_NOT_FOUND', ...STATE_REFUSALS],
    request: Type.Object({
      operationId: OperationId,
      statusReason: OptionalOrNull(StatusReason),
      additionalData: AdditionalData,
    }),
    response: OperationView(dialect),
    async handle(call) {
      const { parts, applicationId, request, caller } = call
      const { operationId, statusReason = null } = request
      requireNoData(request.additionalData)
      await cancelOperation(parts, applicationId, { operationId, statusReason, verifiedBy: caller.username })
      return await viewOperation(dialect, call, await readOperation(parts, applicationId, operationId))
    },
  })

/** Composes operations for an answer, with their current status. */
async function viewOperations(
  { operationFactors }: Dialect,
  { parts }: ReferenceCall,
  rows: readonly OperationRow[],
): Promise<Static<TObject>[]> {
  const notes = await listOperationNotes(
    parts.db,
    rows.map(({ operationId }) => operationId),
  )
  return rows.map((row) => {
    const { userId, activationFlag, activationId, statusReason, riskFlags } = row
    const status = statusAt(row, parts.platform.now())
    const { externalId = null, finalizedAt = null } = notes.get(row.operationId) ?? {}
    const proximityOtp = status === 'PENDING' ? readProximityOtp(parts, row) : undefined
    return {
      id: row.operationId,
      ...(userId !== null && { userId }),
      applications: [row.applicationId],
      ...(externalId !== null && { externalId }),
      ...(activationFlag !== null && { activationFlag }),
      ...(activationId !== null && { activationId }),
      operationType: row.operationType,
      templateName: row.templateName,
      data: row.data,
      parameters: row.parameters,
      status,
      ...(statusReason !== null && { statusReason }),
      [operationFactors]: row.signatureTypes.map((factors) => factors.toUpperCase()),
      failureCount: row.failureCount,
      maxFailureCount: row.maxFailureCount,
      timestampCreated: row.createdAt.toISOString(),
      timestampExpires: row.expiresAt.toISOString(),
      ...(finalizedAt !== null && { timestampFinalized: finalizedAt.toISOString() }),
      ...(riskFlags !== '' && { riskFlags }),
      ...(proximityOtp !== undefined && { proximityOtp }),
    }
  })
}

async function viewOperation(dialect: Dialect, call: ReferenceCall, row: OperationRow): Promise<Static<TObject>> {
  const [view] = await viewOperations(dialect, call, [row])
  if (view === undefined) throw new TypeError('one operation has one view')
  return view
}
