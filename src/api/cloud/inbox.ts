// /inbox/messages: the bank leaves a message that its user reads in the app, beyond the contract (mobile-token §8).
import { Type } from '@sinclair/typebox'
import { insertInboxMessage } from '../../storage/inbox-messages.ts'
import { ownerOf } from './application-of.ts'
import { cloudEndpoint } from './endpoint.ts'
import { UserId } from './fields.ts'

const Line = (max: number) => Type.String({ pattern: `^[^\\u0000]{1,${max}}$`, description: `must be 1 to ${max} characters` })

export const inboxMessageCreate = cloudEndpoint({
  method: 'POST',
  path: '/inbox/messages',
  operationId: 'createInboxMessage',
  summary: 'Leaves a message in the inbox of a user',
  errors: ['REGISTRATION_NOT_FOUND'],
  roles: ['admin', 'integration'],
  body: Type.Object({
    userId: UserId,
    type: Type.Optional(Type.Unsafe<'text' | 'html'>(Type.String({ enum: ['text', 'html'], default: 'text' }))),
    subject: Line(255),
    summary: Line(1024),
    body: Line(65_536),
  }),
  response: Type.Object({ messageId: Type.String() }),
  async handle(call) {
    const { userId, type = 'text', subject, summary, body } = call.body
    const owner = await ownerOf(call, userId)
    const { platform, db } = call.parts
    const messageId = platform.uuid()
    await insertInboxMessage(db, {
      message_id: messageId,
      application_id: owner.applicationId,
      user_id: owner.userId,
      type,
      subject,
      summary,
      body,
      created_at: new Date(platform.now()),
    })
    return { messageId }
  },
})
