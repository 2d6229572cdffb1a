// An operation as the bank sees it (cloud §6).
import { type Static, Type } from '@sinclair/typebox'
import { readProximityOtp } from '../../../domain/operation/proximity.ts'
import type { OperationRow } from '../../../storage/operations.ts'
import type { CloudParts } from '../parts.ts'
import { named } from '../../../http/types.ts'

export const PAYMENT = { amount: '10.00', currency: 'EUR', iban: 'DE89370400440532013000' }

export const Operation = named(
  'Operation',
  Type.Object(
    {
      operationId: Type.String({ format: 'uuid' }),
      userId: Type.String(),
      status: Type.Union(
        ['PENDING', 'CANCELED', 'EXPIRED', 'APPROVED', 'REJECTED', 'FAILED'].map((status) => Type.Literal(status)),
      ),
      template: Type.String(),
      operationType: Type.String(),
      // The default pattern of names ends at a line break.
      parameters: Type.Record(Type.String({ pattern: '^[^]*$' }), Type.String()),
      failureCount: Type.Integer(),
      maxFailureCount: Type.Integer(),
      timestampCreated: Type.Integer({ description: 'milliseconds since 1970-01-01 UTC' }),
      timestampExpires: Type.Integer({ description: 'milliseconds since 1970-01-01 UTC' }),
      proximityOtp: Type.Optional(Type.String({ description: 'only with a proximity check: the password to show now' })),
    },
    {
      examples: [
        {
          operationId: '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
          userId: 'alice',
          status: 'PENDING',
          template: 'payment',
          operationType: 'authorize_payment',
          parameters: PAYMENT,
          failureCount: 0,
          maxFailureCount: 5,
          timestampCreated: 1767225600000,
          timestampExpires: 1767225900000,
        },
      ],
    },
  ),
)

export const toOperation = (parts: CloudParts, operation: OperationRow): Static<typeof Operation> => {
  const proximityOtp = operation.status === 'PENDING' ? readProximityOtp(parts, operation) : undefined
  return {
    operationId: operation.operationId,
    userId: operation.userId ?? '',
    status: operation.status,
    template: operation.templateName,
    operationType: operation.operationType,
    parameters: operation.parameters,
    failureCount: operation.failureCount,
    maxFailureCount: operation.maxFailureCount,
    timestampCreated: operation.createdAt.getTime(),
    timestampExpires: operation.expiresAt.getTime(),
    ...(proximityOtp !== undefined && { proximityOtp }),
  }
}
