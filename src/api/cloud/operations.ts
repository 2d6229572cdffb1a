// /operations: creates, shows, cancels and approves operations, which the bank asks its users to approve. /v2/operations: creates and shows those
// for one device, for devices with a flag, or for the first user who claims them. Spec: cloud §6, §8.
import { type Static, type TObject, Type } from '@sinclair/typebox'
import { type Asked, createOperation, type OperationRequest } from '../../domain/operation/create.ts'
import { approveOffline, createOfflineQr } from '../../channel/offline-approval.ts'
import { cancelOperation, readOperation, STATE_REFUSALS } from '../../domain/operation/operation.ts'
import { readProximityOtp } from '../../domain/operation/proximity.ts'
import { MembersOf, named, OptionalOrNull, withExample } from '../../http/types.ts'
import { expireOperation } from '../../storage/operation/transitions.ts'
import type { OperationRow } from '../../storage/operation/operations.ts'
import { applicationOf, namedOwnerOf, refuseWithoutApplication } from './application-of.ts'
import { type CloudCall, cloudEndpoint } from './endpoint.ts'
import {
  Flag,
  GivenTime,
  Identifier,
  OfSeveral,
  OperationId,
  OptionalText,
  RegistrationId,
  Status,
  StatusReason,
  Time,
  UserId,
} from './fields.ts'
import type { CloudParts } from './parts.ts'

/** Parameters of the shipped template `payment`, for examples. */
const PAYMENT = { amount: '10.00', currency: 'EUR', iban: 'DE89370400440532013000' }

export const OPERATION_MEMBERS = {
  operationId: Type.String({ format: 'uuid' }),
  userId: Type.String(),
  status: Status,
  template: Type.String(),
  operationType: Type.String(),
  parameters: MembersOf(Type.String()),
  failureCount: Type.Integer({ description: 'failed approvals until now' }),
  maxFailureCount: Type.Integer({ description: 'failed approvals that end the operation' }),
  timestampCreated: Time,
  timestampExpires: Time,
  proximityOtp: Type.Optional(Type.String({ description: 'only with a proximity check: the password to show now' })),
} as const

const OPERATION_EXAMPLE = {
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
}

const Operation = named('Operation', Type.Object(OPERATION_MEMBERS, { examples: [OPERATION_EXAMPLE] }))

/** The values of OPERATION_MEMBERS. The user of an operation that nobody has claimed yet is an empty text. */
const toOperation = (parts: CloudParts, operation: OperationRow): Static<typeof Operation> => {
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

const CreationHeaders = Type.Object({
  'idempotency-key': Type.Optional(
    Type.String({
      pattern: '^[^\\u0000-\\u001F\\u007F]{1,255}$',
      description: 'must be 1 to 255 characters without control characters',
      examples: ['transfer-4711'],
    }),
  ),
})

export const Parameters = Type.Record(
  Type.String({ pattern: '^[^\\u0000-\\u001F\\u007F]{1,255}$' }),
  Type.String({ pattern: '^[^\\u0000]{0,4096}$', description: 'must be at most 4096 characters' }),
  { additionalProperties: false, description: 'must have names of 1 to 255 characters without control characters' },
)

/** The members of a request that creates an operation, without those that name user or device. */
const CREATION_MEMBERS = {
  template: withExample(Identifier, 'login'),
  language: OptionalOrNull(Type.String({ pattern: '^[A-Za-z]{2}$', description: 'must be two letters', examples: ['en'] })),
  externalId: OptionalText,
  parameters: OptionalOrNull(Parameters),
} as const

type CreationCall = CloudCall<Static<TObject<typeof CREATION_MEMBERS>>, unknown, unknown, Static<typeof CreationHeaders>>

/** Creates an operation in the application of the caller. Throws the errors of createOperation. */
async function askUser(
  call: CreationCall,
  asked: Asked,
  limits: Pick<OperationRequest, 'activationId' | 'activationFlag' | 'expiresAt'> = {},
): Promise<OperationRow> {
  const { template, language, externalId, parameters } = call.body
  const operation = await createOperation(call.parts, asked, {
    template,
    language: (language ?? 'en').toLowerCase(),
    externalId: externalId ?? null,
    parameters: parameters ?? {},
    ...limits,
    username: call.caller.username,
    idempotencyKey: call.headers['idempotency-key'],
  })
  if (operation === undefined) throw await refuseWithoutApplication(call)
  return operation
}

const operationCreate = cloudEndpoint({
  route: 'POST /operations',
  operationId: 'createOperation',
  summary: 'Asks a user to approve something',
  description: 'The same `Idempotency-Key` with the same body answers with the first operation.',
  errors: ['REGISTRATION_NOT_FOUND'],
  roles: ['admin', 'integration'],
  headers: CreationHeaders,
  body: Type.Object(
    { userId: UserId, ...CREATION_MEMBERS },
    {
      examples: [
        { userId: 'alice', template: 'payment', parameters: PAYMENT },
        { userId: 'alice', template: 'login' },
      ],
    },
  ),
  response: Operation,
  handle: async (call) => toOperation(call.parts, await askUser(call, await namedOwnerOf(call, call.body.userId))),
})

/** An operation as the caller may see it. A caller of the role read-only does not get the one-time password for its approval. */
async function readShown(call: CloudCall, operationId: string): Promise<OperationRow> {
  const operation = await readOperation(call.parts, await applicationOf(call), operationId)
  return call.caller.role === 'read-only' ? { ...operation, proximitySeed: null } : operation
}

const operationRead = cloudEndpoint({
  route: 'GET /operations',
  operationId: 'readOperation',
  summary: 'State of an operation',
  errors: ['REGISTRATION_NOT_FOUND', 'OPERATION_NOT_FOUND'],
  roles: ['admin', 'integration', 'read-only'],
  query: Type.Object({ operationId: OperationId }),
  response: Operation,
  handle: async (call) => toOperation(call.parts, await readShown(call, call.query.operationId)),
})

const operationCancel = cloudEndpoint({
  route: 'DELETE /operations',
  operationId: 'cancelOperation',
  summary: 'Cancels an operation that waits',
  errors: ['REGISTRATION_NOT_FOUND', 'OPERATION_NOT_FOUND', ...STATE_REFUSALS],
  roles: ['admin', 'integration'],
  query: Type.Object({ operationId: OperationId, statusReason: StatusReason }),
  async handle(call) {
    const { operationId, statusReason = null } = call.query
    const asked = { operationId, statusReason, verifiedBy: call.caller.username }
    await cancelOperation(call.parts, await applicationOf(call), asked)
  },
})

const DeviceOperation = named(
  'DeviceOperation',
  Type.Object(
    {
      ...OPERATION_MEMBERS,
      userId: Type.Optional(Type.String({ description: 'absent until somebody claims it' })),
      registrationId: Type.Optional(Type.String({ description: 'the only device that is shown it and decides it' })),
      applicationFlag: Type.Optional(Type.String({ description: 'what a device must carry to approve it' })),
    },
    { examples: [{ ...OPERATION_EXAMPLE, registrationId: '7f0c2f5e-6d0c-4f55-8a53-3f1a2f6b1c11', applicationFlag: 'VERIFIED' }] },
  ),
)
export type DeviceOperation = Static<typeof DeviceOperation>

const toDeviceOperation = (parts: CloudParts, row: OperationRow): DeviceOperation => {
  const { userId, ...shown } = toOperation(parts, row)
  return {
    ...shown,
    ...(row.userId !== null && { userId }),
    ...(row.activationId !== null && { registrationId: row.activationId }),
    ...(row.activationFlag !== null && { applicationFlag: row.activationFlag }),
  }
}

const deviceOperationCreate = cloudEndpoint({
  route: 'POST /v2/operations',
  operationId: 'createDeviceOperation',
  summary: 'Asks a user, one device of a user, or whoever claims it, to approve something',
  description:
    'All that `POST /operations` takes. With `registrationId` no other device is shown the operation or decides it. With `applicationFlag` a ' +
    'device must carry that flag to approve it. Without `userId` it waits for the first device that claims it and could approve it. The same ' +
    '`Idempotency-Key` with the same body answers with the first operation.',
  errors: ['REGISTRATION_NOT_FOUND'],
  roles: ['admin', 'integration'],
  headers: CreationHeaders,
  body: Type.Object(
    {
      userId: OptionalOrNull(UserId),
      ...CREATION_MEMBERS,
      registrationId: OptionalOrNull(RegistrationId),
      applicationFlag: OptionalOrNull(Flag),
      expiresAt: OptionalOrNull(GivenTime),
    },
    {
      examples: [
        { userId: 'alice', template: 'payment', parameters: PAYMENT, registrationId: '7f0c2f5e-6d0c-4f55-8a53-3f1a2f6b1c11' },
        { template: 'login', applicationFlag: 'VERIFIED' },
      ],
    },
  ),
  response: DeviceOperation,
  async handle(call) {
    const { userId, registrationId, applicationFlag, expiresAt } = call.body
    const operation = await askUser(call, await namedOwnerOf(call, userId ?? null), {
      activationId: registrationId ?? undefined,
      activationFlag: applicationFlag ?? undefined,
      expiresAt: expiresAt == null ? undefined : new Date(expiresAt),
    })
    return toDeviceOperation(call.parts, operation)
  },
})

const deviceOperationRead = cloudEndpoint({
  route: 'GET /v2/operations/:id',
  operationId: 'readDeviceOperation',
  summary: 'State of an operation, with whom it is for',
  errors: ['REGISTRATION_NOT_FOUND', 'OPERATION_NOT_FOUND'],
  roles: ['admin', 'integration', 'read-only'],
  params: Type.Object({ id: OperationId }),
  response: DeviceOperation,
  handle: async (call) => toDeviceOperation(call.parts, await readShown(call, call.params.id)),
})

const offlineQr = cloudEndpoint({
  route: 'GET /operations/offline/qr',
  operationId: 'createOfflineQr',
  summary: 'QR code for an approval without connection',
  errors: ['REGISTRATION_NOT_FOUND', 'OPERATION_NOT_FOUND', ...STATE_REFUSALS],
  roles: ['admin', 'integration'],
  query: Type.Object({ operationId: OperationId, registrationId: OfSeveral }),
  response: Type.Object({
    operationQrCodeData: Type.String({ description: 'the content of the QR code' }),
    nonce: Type.String({ description: 'Base64 of 16 bytes, goes back with the password' }),
  }),
  async handle(call) {
    const { operationId, registrationId } = call.query
    return createOfflineQr(call.parts, await applicationOf(call), { operationId, registrationId })
  },
})

const offlineOtp = cloudEndpoint({
  route: 'POST /operations/offline/otp',
  operationId: 'approveOffline',
  summary: 'Approves an operation by its one-time password',
  errors: ['OTP_INVALID', 'REGISTRATION_NOT_FOUND', 'OPERATION_NOT_FOUND', ...STATE_REFUSALS, 'TOO_MANY_REQUESTS'],
  roles: ['admin', 'integration'],
  body: Type.Object({
    operationId: OperationId,
    otp: withExample(Identifier, '12345678-12345678'),
    nonce: withExample(Identifier, 'AAECAwQFBgcICQoLDA0ODw=='),
    registrationId: OfSeveral,
  }),
  async handle(call) {
    const { operationId, otp, nonce, registrationId } = call.body
    const applicationId = await applicationOf(call)
    await approveOffline(call.parts, applicationId, { operationId, registrationId, otp, nonce })
  },
})

/**
 * POST /internal/callback/operation: stores that an operation has expired. It remains for compatibility, because pawl expires operations itself
 * (cloud §8).
 */
export const operationCallback = cloudEndpoint({
  route: 'POST /internal/callback/operation',
  operationId: 'expireOperation',
  summary: 'Tells of an operation that changed inside',
  description: 'pawl tells itself; this makes an expiry durable that is due. An unknown operation is no error.',
  roles: ['internal', 'admin'],
  body: Type.Object({ operationId: OperationId }),
  // An unknown operation is no error, because the caller must not learn which operations exist.
  async handle({ body: { operationId }, parts }) {
    await expireOperation(parts.db, operationId, new Date(parts.platform.now()))
  },
})

export const operationEndpoints = [
  operationCreate,
  operationRead,
  operationCancel,
  deviceOperationCreate,
  deviceOperationRead,
  offlineQr,
  offlineOtp,
]
