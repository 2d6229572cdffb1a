// POST /admin/users/{name}/password: a new password, shown this once (cloud §2).
import { Type } from '@sinclair/typebox'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { ChosenPassword } from '../../fields.ts'
import { auditedUser, OfUser } from './user.ts'

export const userPassword = auditedEndpoint({
  method: 'POST',
  path: '/admin/users/:name/password',
  operationId: 'resetPassword',
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
  async handle({ params: { name }, body: { keepPreviousSeconds = 0 }, tx, parts, afterCommit }, prepared) {
    await parts.credentials.reset(tx, name, prepared, keepPreviousSeconds)
    afterCommit(parts.credentials.forget)
    return { username: name, password: prepared.password }
  },
  audited: auditedUser,
})
