// /admin/users: the credentials of the cloud API, beyond the contract (cloud §2, §10).
import { Type } from '@sinclair/typebox'
import { requireApplication } from '../../../domain/application/application.ts'
import { Ok } from '../../../http/types.ts'
import { notFound, PawlError } from '../../../lib/errors.ts'
import { deleteCredential, findCredential, listCredentials } from '../../../storage/credentials.ts'
import type { Db } from '../../../storage/database.ts'
import type { Role } from '../../../storage/schema.ts'
import { type Audited, cloudEndpoint } from '../endpoint.ts'
import { ChosenPassword, Identifier, OptionalTime, Username } from '../fields.ts'

const RoleName = Type.Unsafe<Role>(Type.String({ enum: ['admin', 'integration', 'internal', 'read-only'] }))
const OfUser = Type.Object({ name: Username })

const audited: Audited<unknown, unknown, { readonly name: string }, unknown> = {
  target: ({ params: { name } }) => `user ${name}`,
  view: ({ params: { name }, parts }) => viewUser(parts.db, name),
}

export const usersList = cloudEndpoint({
  method: 'GET',
  path: '/admin/users',
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
  summary: 'Creates a credential',
  description: 'The password is shown this once.',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  body: Type.Object({
    username: Username,
    role: RoleName,
    /** Without one an integration user has no access. */
    application: Type.Optional(Identifier),
    password: Type.Optional(ChosenPassword),
    expiresAt: OptionalTime,
  }),
  response: Type.Object({
    username: Type.String(),
    role: RoleName,
    application: Type.Optional(Type.String()),
    /** Shown this once. */
    password: Type.String(),
  }),
  prepare: ({ body: { password }, parts }) => parts.credentials.prepare(password),
  async handle({ body: { username, role, application, expiresAt }, parts }, prepared) {
    if (application !== undefined) await requireApplication(parts.db, application)
    const ends = expiresAt === undefined ? null : new Date(expiresAt)
    await parts.credentials.create(parts.db, { username, role, applicationId: application ?? null, expiresAt: ends }, prepared)
    return { username, role, ...(application !== undefined && { application }), password: prepared.password }
  },
  audited: {
    target: ({ body: { username } }) => `user ${username}`,
    view: ({ body: { username }, parts }) => viewUser(parts.db, username),
  },
})

export const userRemove = cloudEndpoint({
  method: 'DELETE',
  path: '/admin/users/:name',
  summary: 'Removes a credential',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfUser,
  response: Ok,
  async handle({ params: { name }, caller, parts, afterCommit }) {
    if (name === caller.username) throw new PawlError('ADMINISTRATION_REFUSED', { detail: 'nobody removes their own credential' })
    if (!(await deleteCredential(parts.db, name))) throw notFound(`user ${name}`)
    afterCommit(parts.credentials.forget)
    return { status: 'OK' as const }
  },
  audited,
})

export const userPassword = cloudEndpoint({
  method: 'POST',
  path: '/admin/users/:name/password',
  summary: 'Gives a credential a new password',
  description: 'Without `password` one is generated. It is shown this once.',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfUser,
  body: Type.Object({
    password: Type.Optional(ChosenPassword),
    /** How long the previous password stays valid beside the new one. */
    keepPreviousSeconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 2_592_000 })),
  }),
  response: Type.Object({ username: Type.String(), password: Type.String() }),
  prepare: ({ params: { name }, body: { password }, parts }) => parts.credentials.prepare(password, name),
  async handle({ params: { name }, body: { keepPreviousSeconds = 0 }, parts, afterCommit }, prepared) {
    await parts.credentials.reset(parts.db, name, prepared, keepPreviousSeconds)
    afterCommit(parts.credentials.forget)
    return { username: name, password: prepared.password }
  },
  audited,
})

/** A user for the audit log: of passwords only which kind there are and until when. */
async function viewUser(db: Db, username: string) {
  const user = await findCredential(db, username)
  if (user === undefined) return undefined
  const { role, applicationId, isDisabled, expiresAt } = user
  const passwords = user.passwords.map((password) => ({ scheme: password.scheme, expiresAt: password.expiresAt }))
  return { username, role, application: applicationId, isDisabled, expiresAt, passwords }
}
