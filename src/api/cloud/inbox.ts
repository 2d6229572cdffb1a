// /inbox/messages: manages messages of the bank that a user reads in the app. The contract does not have these endpoints (cloud §6.9, mobile-token
// §8).
import { type Static, Type } from '@sinclair/typebox'
import { named, OneOf } from '../../http/types.ts'
import { requestRefused } from '../../lib/errors.ts'
import {
  deleteInboxMessage,
  findMessageOfApplication,
  type InboxMessageRow,
  insertInboxMessage,
  listInboxMessages,
} from '../../storage/user/inbox-messages.ts'
import { applicationOf, ownerOf, refuseWithoutApplication } from './application-of.ts'
import { cloudEndpoint } from './endpoint.ts'
import { OfMadeId, PageLimit, Time, UserId } from './fields.ts'

const Line = (max: number) => Type.String({ pattern: `^[^\\u0000]{1,${max}}$`, description: `must be 1 to ${max} characters` })

const inboxMessageCreate = cloudEndpoint({
  route: 'POST /inbox/messages',
  operationId: 'createInboxMessage',
  summary: 'Leaves a message in the inbox of a user',
  errors: ['REGISTRATION_NOT_FOUND'],
  roles: ['admin', 'integration'],
  body: Type.Object({
    userId: UserId,
    type: Type.Optional(OneOf(['text', 'html'], { default: 'text' })),
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
    const isStored = await insertInboxMessage(db, {
      message_id: messageId,
      application_id: owner.applicationId,
      user_id: owner.userId,
      type,
      subject,
      summary,
      body,
      created_at: new Date(platform.now()),
    })
    if (!isStored) throw await refuseWithoutApplication(call)
    return { messageId }
  },
})

const Message = Type.Object({
  messageId: Type.String(),
  type: OneOf(['text', 'html']),
  subject: Type.String(),
  summary: Type.String(),
  isRead: Type.Boolean(),
  timestampCreated: Time,
})
export type Message = Static<typeof Message>

const MessageDetail = Type.Composite([Message, Type.Object({ userId: Type.String(), body: Type.String() })])
export type MessageDetail = Static<typeof MessageDetail>

const inboxMessagesList = cloudEndpoint({
  route: 'GET /inbox/messages',
  operationId: 'listInboxMessages',
  summary: 'Lists messages in the inbox of a user',
  description: 'Newest first, without their bodies. A page with fewer messages than `limit` (100) is the last.',
  errors: ['REGISTRATION_NOT_FOUND'],
  roles: ['admin', 'integration', 'read-only'],
  query: Type.Object({
    userId: UserId,
    onlyUnread: Type.Optional(Type.Boolean({ description: 'leaves out what its user has read' })),
    limit: PageLimit(100, 100),
    page: Type.Optional(Type.Integer({ minimum: 0, maximum: 10_000, description: 'from 0; 0 without it' })),
  }),
  response: Type.Object({ messages: Type.Array(named('InboxMessage', Message)) }),
  async handle(call) {
    const { userId, onlyUnread = false, limit: size, page = 0 } = call.query
    const rows = await listInboxMessages(call.parts.db, await ownerOf(call, userId), { page, size, onlyUnread })
    return { messages: rows.map(toMessage) }
  },
})

const inboxMessageRead = cloudEndpoint({
  route: 'GET /inbox/messages/:id',
  operationId: 'readInboxMessage',
  summary: 'Reads a message in an inbox',
  description: 'It stays unread for its user.',
  errors: ['REGISTRATION_NOT_FOUND'],
  roles: ['admin', 'integration', 'read-only'],
  params: OfMadeId,
  response: MessageDetail,
  async handle(call) {
    const found = await findMessageOfApplication(call.parts.db, await applicationOf(call), call.params.id)
    if (found === undefined) throw unknownMessage()
    return toMessage(found)
  },
})

const inboxMessageRemove = cloudEndpoint({
  route: 'DELETE /inbox/messages/:id',
  operationId: 'removeInboxMessage',
  summary: 'Takes a message out of an inbox',
  errors: ['REGISTRATION_NOT_FOUND'],
  roles: ['admin', 'integration'],
  params: OfMadeId,
  async handle(call) {
    if (!(await deleteInboxMessage(call.parts.db, await applicationOf(call), call.params.id))) throw unknownMessage()
  },
})

const toMessage = <M extends InboxMessageRow>({ createdAt, ...message }: M) => ({
  ...message,
  timestampCreated: createdAt.getTime(),
})

const unknownMessage = () => requestRefused('id', 'must be the id of a message of this application')

export const inboxEndpoints = [inboxMessageCreate, inboxMessagesList, inboxMessageRead, inboxMessageRemove]
