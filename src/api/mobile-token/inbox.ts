// inbox: shows the messages of the bank to a user. Spec: mobile-token §8.
import { Type } from '@sinclair/typebox'
import { tokenReadEndpoint } from '../../channel/flow/token-read.ts'
import { tokenEndpoint } from '../../channel/flow/token.ts'
import { ObjectRequest, ObjectResponse, Ok, ok, OptionalOrNull } from '../../http/types.ts'
import { PawlError } from '../../lib/errors.ts'
import {
  findInboxMessage,
  type InboxMessageRow,
  listInboxMessages,
  markAllMessagesRead,
  markMessageRead,
} from '../../storage/user/inbox-messages.ts'
import { formatTime } from './operation/view.ts'
import type { MobileTokenParts } from './parts.ts'

const Message = Type.Object({
  id: Type.String(),
  type: Type.String(),
  subject: Type.String(),
  summary: Type.String(),
  read: Type.Boolean(),
  timestampCreated: Type.String(),
})
const OfMessage = ObjectRequest(Type.Object({ id: Type.String({ minLength: 1, maxLength: 255 }) }))

export const inboxCount = tokenReadEndpoint({
  path: 'inbox/count',
  summary: 'Number of unread messages',
  errors: ['TOO_MANY_REQUESTS'],
  request: Type.Object({}),
  response: ObjectResponse(Type.Object({ countUnread: Type.Integer() })),
  read: (names, { tokenReads }: MobileTokenParts) => tokenReads.unreadMessages(names),
  async handle({ bearer, found }, parts: MobileTokenParts) {
    parts.mobileReads.take(bearer.activationId, parts.platform.monotonic())
    return ok({ countUnread: found })
  },
})

export const inboxList = tokenEndpoint({
  path: 'inbox/message/list',
  summary: 'Messages of the inbox',
  errors: ['TOO_MANY_REQUESTS'],
  isRepeatable: true,
  request: ObjectRequest(
    Type.Object({
      page: Type.Integer({ minimum: 0, maximum: 100_000, description: 'from 0' }),
      size: Type.Integer({ minimum: 1, maximum: 100 }),
      onlyUnread: OptionalOrNull(Type.Boolean()),
    }),
  ),
  response: Type.Object({
    status: Type.Literal('OK'),
    responseObject: Type.Array(Message),
    page: Type.Integer(),
    size: Type.Integer(),
  }),
  async handle({ bearer, request: { requestObject } }, parts: MobileTokenParts) {
    parts.mobileReads.take(bearer.activationId, parts.platform.monotonic())
    const { page, size, onlyUnread } = requestObject
    const messages = await listInboxMessages(parts.db, bearer, { page, size, onlyUnread: onlyUnread === true })
    return { ...ok(messages.map(toMessage)), page, size }
  },
})

export const inboxDetail = tokenEndpoint({
  path: 'inbox/message/detail',
  summary: 'One message',
  errors: ['TOO_MANY_REQUESTS', 'INBOX_REFUSED'],
  isRepeatable: true,
  request: OfMessage,
  response: ObjectResponse(Type.Composite([Message, Type.Object({ body: Type.String() })])),
  async handle({ bearer, request }, parts: MobileTokenParts) {
    parts.mobileReads.take(bearer.activationId, parts.platform.monotonic())
    const message = await findInboxMessage(parts.db, bearer, request.requestObject.id)
    if (message === undefined) throw new PawlError('INBOX_REFUSED', { detail: 'no such message' })
    return ok({ ...toMessage(message), body: message.body })
  },
})

export const inboxRead = tokenEndpoint({
  path: 'inbox/message/read',
  summary: 'Marks a message as read',
  errors: ['INBOX_REFUSED'],
  isRepeatable: false,
  request: OfMessage,
  response: Ok,
  async handle({ bearer, request }, parts: MobileTokenParts) {
    const isKnown = await markMessageRead(parts.db, bearer, request.requestObject.id)
    if (!isKnown) throw new PawlError('INBOX_REFUSED', { detail: 'no such message' })
    return { status: 'OK' as const }
  },
})

export const inboxReadAll = tokenEndpoint({
  path: 'inbox/message/read-all',
  summary: 'Marks all messages as read',
  errors: [],
  isRepeatable: false,
  request: Type.Object({}),
  response: Ok,
  async handle({ bearer }, parts: MobileTokenParts) {
    await markAllMessagesRead(parts.db, bearer)
    return { status: 'OK' as const }
  },
})

const toMessage = ({ messageId, type, subject, summary, isRead, createdAt }: InboxMessageRow) => ({
  id: messageId,
  type,
  subject,
  summary,
  read: isRead,
  timestampCreated: formatTime(createdAt.getTime()),
})
