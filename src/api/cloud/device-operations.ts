// /v2/operations: creates and shows operations for one device, for devices with a flag, or for the first user who claims them (cloud §6.10).
import { type Static, Type } from '@sinclair/typebox'
import { named, OptionalOrNull } from '../../http/types.ts'
import type { OperationRow } from '../../storage/operation/operations.ts'
import { namedOwnerOf } from './application-of.ts'
import { cloudEndpoint } from './endpoint.ts'
import { Flag, GivenTime, OperationId, RegistrationId, UserId } from './fields.ts'
import {
  askUser,
  CREATION_MEMBERS,
  CreationHeaders,
  OPERATION_EXAMPLE,
  OPERATION_MEMBERS,
  PAYMENT,
  readShown,
  toOperation,
} from './operations.ts'
import type { CloudParts } from './parts.ts'

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

const toDeviceOperation = (parts: CloudParts, row: OperationRow): Static<typeof DeviceOperation> => {
  const { userId, ...shown } = toOperation(parts, row)
  return {
    ...shown,
    ...(row.userId !== null && { userId }),
    ...(row.activationId !== null && { registrationId: row.activationId }),
    ...(row.activationFlag !== null && { applicationFlag: row.activationFlag }),
  }
}

const deviceOperationCreate = cloudEndpoint({
  method: 'POST',
  path: '/v2/operations',
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
      activationId: registrationId?.toLowerCase(),
      activationFlag: applicationFlag ?? undefined,
      expiresAt: expiresAt == null ? undefined : new Date(expiresAt),
    })
    return toDeviceOperation(call.parts, operation)
  },
})

const deviceOperationRead = cloudEndpoint({
  method: 'GET',
  path: '/v2/operations/:id',
  operationId: 'readDeviceOperation',
  summary: 'State of an operation, with whom it is for',
  errors: ['REGISTRATION_NOT_FOUND', 'OPERATION_NOT_FOUND'],
  roles: ['admin', 'integration', 'read-only'],
  params: Type.Object({ id: OperationId }),
  response: DeviceOperation,
  handle: async (call) => toDeviceOperation(call.parts, await readShown(call, call.params.id)),
})

export const deviceOperationEndpoints = [deviceOperationCreate, deviceOperationRead]
