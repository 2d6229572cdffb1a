// GET /admin/users: the credentials of the cloud API (cloud §2).
import { Type } from '@sinclair/typebox'
import { listCredentials } from '../../../../storage/credentials.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { OptionalTime } from '../../fields.ts'
import { RoleName } from './user.ts'

export const usersList = cloudEndpoint({
  method: 'GET',
  path: '/admin/users',
  operationId: 'listUsers',
  summary: 'Lists credentials',
  errors: [],
  roles: ['admin', 'read-only'],
  response: Type.Object({
    users: Type.Array(
      Type.Object({
        username: Type.String(),
        role: RoleName,
        application: Type.Optional(Type.String()),
        isDisabled: Type.Boolean(),
        expiresAt: OptionalTime,
        allowedAddresses: Type.Optional(Type.Array(Type.String())),
        certificates: Type.Optional(Type.Array(Type.String())),
      }),
    ),
  }),
  async handle({ parts }) {
    const users = await listCredentials(parts.db)
    return {
      users: users.map(({ username, role, applicationId, isDisabled, expiresAt, allowedAddresses, certificates }) => ({
        username,
        role,
        ...(applicationId !== null && { application: applicationId }),
        isDisabled,
        ...(expiresAt !== null && { expiresAt: expiresAt.getTime() }),
        ...(allowedAddresses.length > 0 && { allowedAddresses: [...allowedAddresses] }),
        ...(certificates.length > 0 && { certificates: [...certificates] }),
      })),
    }
  },
})
