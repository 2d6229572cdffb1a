// /operations: what the bank asks its user to approve. Spec: cloud §6.
import { type Static, Type } from '@sinclair/typebox'
import { cancelOperation, createOperation, readOperation, STATE_REFUSALS } from '../../../domain/operation/operation.ts'
import { readProximityOtp } from '../../../domain/operation/proximity.ts'
import { Ok, withExample } from '../../../http/types.ts'
import type { OperationRow } from '../../../storage/operations.ts'
import { applicationOf, cloudEndpoint, ownerOf } from '../endpoint.ts'
import { Identifier, OperationId, OptionalText, StatusReason, UserId } from '../fields.ts'
import type { CloudParts } from '../parts.ts'

const roles = ['admin', 'integration'] as const

const PAYMENT = { amount: '10.00', currency: 'EUR', iban: 'DE89370400440532013000' }

const Operation = Type.Object(
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
)

export const operationCreate = cloudEndpoint({
  method: 'POST',
  path: '/operations',
  summary: 'Asks a user to approve something',
  description: 'The same `Idempotency-Key` with the same body answers with the first operation.',
  errors: ['REGISTRATION_NOT_FOUND'],
  roles,
  headers: Type.Object({
    'idempotency-key': Type.Optional(
      Type.String({
        pattern: '^[^\\u0000-\\u001F\\u007F]{1,255}$',
        description: 'must be 1 to 255 characters without control characters',
        examples: ['transfer-4711'],
      }),
    ),
  }),
  body: Type.Object(
    {
      userId: UserId,
      template: withExample(Identifier, 'login'),
      language: Type.Optional(
        Type.Union([
          Type.String({ pattern: '^[A-Za-z]{2}$', description: 'must be two letters', examples: ['en'] }),
          Type.Null(),
        ]),
      ),
      externalId: OptionalText,
      parameters: Type.Optional(
        Type.Union([
          Type.Record(
            Type.String({ pattern: '^[^\\u0000-\\u001F\\u007F]{1,255}$' }),
            Type.String({ pattern: '^[^\\u0000]{0,4096}$', description: 'must be at most 4096 characters' }),
            { additionalProperties: false },
          ),
          Type.Null(),
        ]),
      ),
    },
    {
      examples: [
        { userId: 'alice', template: 'payment', parameters: PAYMENT },
        { userId: 'alice', template: 'login' },
      ],
    },
  ),
  response: Operation,
  async handle(call) {
    const { userId, template, language, externalId, parameters } = call.body
    const owner = await ownerOf(call, userId)
    const key = call.headers['idempotency-key']
    const operation = await createOperation(call.parts, owner, {
      template,
      language: (language ?? 'en').toLowerCase(),
      externalId: externalId ?? null,
      parameters: parameters ?? {},
      idempotency: key === undefined ? undefined : { username: call.caller.username, key },
    })
    return toOperation(call.parts, operation)
  },
})

export const operationRead = cloudEndpoint({
  method: 'GET',
  path: '/operations',
  summary: 'State of an operation',
  errors: ['REGISTRATION_NOT_FOUND', 'OPERATION_NOT_FOUND'],
  roles: [...roles, 'read-only'],
  query: Type.Object({ operationId: OperationId }),
  response: Operation,
  async handle(call) {
    const operation = await readOperation(call.parts, await applicationOf(call), call.query.operationId.toLowerCase())
    const { proximityOtp, ...shown } = toOperation(call.parts, operation)
    // Who may only read shows nobody the password for an approval.
    return proximityOtp === undefined || call.caller.role === 'read-only' ? shown : { ...shown, proximityOtp }
  },
})

export const operationCancel = cloudEndpoint({
  method: 'DELETE',
  path: '/operations',
  summary: 'Cancels an operation that waits',
  errors: ['REGISTRATION_NOT_FOUND', 'OPERATION_NOT_FOUND', ...STATE_REFUSALS],
  roles,
  query: Type.Object({ operationId: OperationId, statusReason: StatusReason }),
  response: Ok,
  async handle(call) {
    const { operationId, statusReason } = call.query
    await cancelOperation(call.parts, await applicationOf(call), operationId.toLowerCase(), statusReason ?? null)
    return { status: 'OK' as const }
  },
})

const toOperation = (parts: CloudParts, operation: OperationRow): Static<typeof Operation> => {
  const proximityOtp = operation.status === 'PENDING' ? readProximityOtp(parts, operation) : undefined
  return {
    operationId: operation.operationId,
    userId: operation.userId ?? '',
    status: operation.status,
    template: operation.templateName,
    operationType: operation.operationType,
    parameters: JSON.parse(operation.parameters),
    failureCount: operation.failureCount,
    maxFailureCount: operation.maxFailureCount,
    timestampCreated: operation.createdAt.getTime(),
    timestampExpires: operation.expiresAt.getTime(),
    ...(proximityOtp !== undefined && { proximityOtp }),
  }
}
