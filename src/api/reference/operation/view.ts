// An operation as the reference's back-end API shows it (cloud §15.2).
import { type Static, type TObject, Type } from '@sinclair/typebox'
import { statusAt } from '../../../domain/operation/operation.ts'
import { readProximityOtp } from '../../../domain/operation/proximity.ts'
import { AnyMembers } from '../../../http/types.ts'
import { listOperationNotes, type OperationRow } from '../../../storage/operation/operations.ts'
import type { Dialect } from '../dialect.ts'
import type { ReferenceCall } from '../endpoint.ts'
import { FactorNames, Iso, Names, OperationStatusName } from '../members.ts'

export const OperationView = ({ operationFactors }: Dialect): TObject =>
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
    status: OperationStatusName,
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

/** Operations as they are now. */
export async function viewOperations(
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

/** One of them. */
export async function viewOperation(dialect: Dialect, call: ReferenceCall, row: OperationRow): Promise<Static<TObject>> {
  const [view] = await viewOperations(dialect, call, [row])
  if (view === undefined) throw new TypeError('one operation has one view')
  return view
}
