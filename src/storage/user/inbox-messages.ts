// Stores messages of the bank that a user reads in the app, in the table inbox_message (mobile-token §8).
import { type Insertable, sql } from 'kysely'
import { type Db, isMissingReference, writesRow } from '../database/database.ts'
import type { InboxMessageTable } from '../database/schema.ts'

/** The user an inbox belongs to. */
interface InboxOwner {
  readonly applicationId: string
  readonly userId: string
}

export interface InboxMessageRow {
  readonly messageId: string
  readonly type: 'text' | 'html'
  readonly subject: string
  readonly summary: string
  readonly isRead: boolean
  readonly createdAt: Date
}

/** Adds a message; false when there is no such application. */
export async function insertInboxMessage(db: Db, message: Insertable<InboxMessageTable>): Promise<boolean> {
  try {
    await db.insertInto('inbox_message').values(message).execute()
    return true
  } catch (error) {
    if (isMissingReference(error)) return false
    throw error
  }
}

interface InboxPage {
  /** Number of the page, from 0. */
  readonly page: number
  readonly size: number
  readonly onlyUnread: boolean
}

/** Lists one page of messages, newest first. */
export async function listInboxMessages(
  db: Db,
  owner: InboxOwner,
  { page, size, onlyUnread }: InboxPage,
): Promise<InboxMessageRow[]> {
  const query = ofOwner(db, owner).select(messageColumns)
  return (onlyUnread ? query.where('is_read', '=', false) : query)
    .orderBy('created_at', 'desc')
    .orderBy('message_id')
    .limit(size)
    .offset(page * size)
    .execute()
}

/** Finds a message of a user, with its body. */
export async function findInboxMessage(
  db: Db,
  owner: InboxOwner,
  messageId: string,
): Promise<(InboxMessageRow & { readonly body: string }) | undefined> {
  return ofOwner(db, owner)
    .select([...messageColumns, 'body'])
    .where('message_id', '=', messageId)
    .executeTakeFirst()
}

/** Finds a message of any user of the application, with its body and its user. */
export async function findMessageOfApplication(
  db: Db,
  applicationId: string,
  messageId: string,
): Promise<(InboxMessageRow & { readonly body: string; readonly userId: string }) | undefined> {
  return db
    .selectFrom('inbox_message')
    .select([...messageColumns, 'body', 'user_id as userId'])
    .where('message_id', '=', messageId)
    .where('application_id', '=', applicationId)
    .executeTakeFirst()
}

/** Deletes one message; false when the application has none of that id. */
export const deleteInboxMessage = (db: Db, applicationId: string, messageId: string): Promise<boolean> =>
  writesRow(db, sql`delete from inbox_message where message_id = ${messageId} and application_id = ${applicationId}`)

/** Marks one message as read; false when the user has none of that id. */
export const markMessageRead = (db: Db, { applicationId, userId }: InboxOwner, messageId: string): Promise<boolean> =>
  writesRow(
    db,
    sql`update inbox_message set is_read = true
      where message_id = ${messageId} and application_id = ${applicationId} and user_id = ${userId}`,
  )

/** Marks all messages of a user as read. */
export async function markAllMessagesRead(db: Db, { applicationId, userId }: InboxOwner): Promise<void> {
  await db
    .updateTable('inbox_message')
    .set({ is_read: true })
    .where('application_id', '=', applicationId)
    .where('user_id', '=', userId)
    .where('is_read', '=', false)
    .execute()
}

const ofOwner = (db: Db, { applicationId, userId }: InboxOwner) =>
  db.selectFrom('inbox_message').where('application_id', '=', applicationId).where('user_id', '=', userId)

const messageColumns = [
  'message_id as messageId',
  'type',
  'subject',
  'summary',
  'is_read as isRead',
  'created_at as createdAt',
] as const
