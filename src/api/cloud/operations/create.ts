// POST /operations: what the bank asks its user to approve (cloud §6).
import { Type } from '@sinclair/typebox'
import { createOperation } from '../../../domain/operation/create.ts'
import { withExample } from '../../../http/types.ts'
import { namedOwnerOf, refuseWithoutApplication } from '../application-of.ts'
import { cloudEndpoint } from '../endpoint.ts'
import { Identifier, OptionalText, UserId } from '../fields.ts'
import { Operation, PAYMENT, toOperation } from './operation.ts'

export const operationCreate = cloudEndpoint({
  method: 'POST',
  path: '/operations',
  operationId: 'createOperation',
  summary: 'Asks a user to approve something',
  description: 'The same `Idempotency-Key` with the same body answers with the first operation.',
  errors: ['REGISTRATION_NOT_FOUND'],
  roles: ['admin', 'integration'],
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
    const named = await namedOwnerOf(call, userId)
    const key = call.headers['idempotency-key']
    const operation = await createOperation(call.parts, named, {
      template,
      language: (language ?? 'en').toLowerCase(),
      externalId: externalId ?? null,
      parameters: parameters ?? {},
      idempotency: key === undefined ? undefined : { username: call.caller.username, key },
    })
    if (operation === undefined) throw await refuseWithoutApplication(call, 'REGISTRATION_NOT_FOUND')
    return toOperation(call.parts, operation)
  },
})
