// POST /admin/users: a credential; its password is shown this once (cloud §2).
import { Type } from '@sinclair/typebox'
import { requireApplication } from '../../../../domain/application/application.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { ChosenPassword, Identifier, OptionalTime, Username } from '../../fields.ts'
import { AllowedAddresses, requireRanges, RoleName, viewUser } from './user.ts'

export const userCreate = auditedEndpoint({
  method: 'POST',
  path: '/admin/users',
  operationId: 'createUser',
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
    allowedAddresses: Type.Optional(AllowedAddresses),
  }),
  response: Type.Object({
    username: Type.String(),
    role: RoleName,
    application: Type.Optional(Type.String()),
    /** Shown this once. */
    password: Type.String(),
  }),
  prepare: ({ body: { password }, parts }) => parts.credentials.prepare(password),
  async handle({ body: { username, role, application, expiresAt, allowedAddresses = [] }, tx, parts }, prepared) {
    requireRanges(allowedAddresses)
    if (application !== undefined) await requireApplication(tx, application)
    const ends = expiresAt === undefined ? null : new Date(expiresAt)
    const user = { username, role, applicationId: application ?? null, expiresAt: ends, allowedAddresses }
    await parts.credentials.create(tx, user, prepared)
    return { username, role, ...(application !== undefined && { application }), password: prepared.password }
  },
  audited: {
    target: ({ body: { username } }) => `user ${username}`,
    view: ({ body: { username }, tx }) => viewUser(tx, username),
  },
})
