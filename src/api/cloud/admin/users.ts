// /admin/users: the credentials of the cloud API, beyond the contract (cloud §2, §10).
import { Type } from '@sinclair/typebox'
import { Ok } from '../../../http/types.ts'
import { PawlError } from '../../../lib/errors.ts'
import { findApplication } from '../../../storage/applications.ts'
import { deleteCredential, listCredentials } from '../../../storage/credentials.ts'
import type { Role } from '../../../storage/schema.ts'
import { cloudEndpoint } from '../endpoint.ts'
import { ChosenPassword, Identifier, Username } from '../fields.ts'

const RoleName = Type.Unsafe<Role>(Type.String({ enum: ['admin', 'integration', 'internal'] }))
const OfUser = Type.Object({ name: Username })
const ExpiresAt = Type.Optional(
  Type.Integer({ minimum: 0, maximum: 253_402_300_799_999, description: 'milliseconds since 1970-01-01 UTC' }),
)

export const usersList = cloudEndpoint({
  method: 'GET',
  path: '/admin/users',
  roles: ['admin'],
  response: Type.Object({
    users: Type.Array(
      Type.Object({
        username: Type.String(),
        role: RoleName,
        application: Type.Optional(Type.String()),
        isDisabled: Type.Boolean(),
        expiresAt: ExpiresAt,
      }),
    ),
  }),
  async handle({ parts }) {
    const users = await listCredentials(parts.db)
    return {
      users: users.map(({ username, role, applicationId, isDisabled, expiresAt }) => ({
        username,
        role,
        ...(applicationId !== null && { application: applicationId }),
        isDisabled,
        ...(expiresAt !== null && { expiresAt: expiresAt.getTime() }),
      })),
    }
  },
})

export const userCreate = cloudEndpoint({
  method: 'POST',
  path: '/admin/users',
  roles: ['admin'],
  body: Type.Object({
    username: Username,
    role: RoleName,
    /** Without one an integration user has no access. */
    application: Type.Optional(Identifier),
    password: Type.Optional(ChosenPassword),
    expiresAt: ExpiresAt,
  }),
  response: Type.Object({
    username: Type.String(),
    role: RoleName,
    application: Type.Optional(Type.String()),
    /** Shown this once. */
    password: Type.String(),
  }),
  async handle({ body: { username, role, application, password: chosen, expiresAt }, parts }) {
    if (application !== undefined && (await findApplication(parts.db, application)) === undefined) {
      throw new PawlError('ADMINISTRATION_REFUSED', { detail: `no application ${application}` })
    }
    const password = await parts.credentials.create({
      username,
      role,
      applicationId: application ?? null,
      password: chosen,
      expiresAt: expiresAt === undefined ? null : new Date(expiresAt),
    })
    return { username, role, ...(application !== undefined && { application }), password }
  },
})

export const userRemove = cloudEndpoint({
  method: 'DELETE',
  path: '/admin/users/:name',
  roles: ['admin'],
  params: OfUser,
  response: Ok,
  async handle({ params: { name }, caller, parts }) {
    if (name === caller.username) throw new PawlError('ADMINISTRATION_REFUSED', { detail: 'nobody removes their own credential' })
    if (!(await deleteCredential(parts.db, name))) throw new PawlError('ADMINISTRATION_REFUSED', { detail: `no user ${name}` })
    parts.credentials.forget()
    return { status: 'OK' as const }
  },
})

export const userPassword = cloudEndpoint({
  method: 'POST',
  path: '/admin/users/:name/password',
  roles: ['admin'],
  params: OfUser,
  body: Type.Object({
    password: Type.Optional(ChosenPassword),
    /** How long the previous password stays valid beside the new one. */
    keepPreviousSeconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 2_592_000 })),
  }),
  response: Type.Object({ username: Type.String(), password: Type.String() }),
  async handle({ params: { name }, body: { password: chosen, keepPreviousSeconds = 0 }, parts }) {
    return { username: name, password: await parts.credentials.reset(name, chosen, keepPreviousSeconds) }
  },
})
