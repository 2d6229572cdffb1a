// Stores messages of the bank that a user reads in the app, in the table inbox_message (mobile-token §8).
import { type Insertable, type RawBuilder, sql } from 'kysely'
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
  const { rows } = await sql<InboxMessageRow>`
    select ${COLUMNS} from inbox_message where ${isOf(owner)}${onlyUnread ? sql` and not is_read` : sql``}
    order by created_at desc, message_id limit ${size} offset ${page * size}`.execute(db)
  return rows
}

/** Finds a message of a user, with its body. */
export async function findInboxMessage(
  db: Db,
  owner: InboxOwner,
  messageId: string,
): Promise<(InboxMessageRow & { readonly body: string }) | undefined> {
  const { rows } = await sql<InboxMessageRow & { readonly body: string }>`
    select ${COLUMNS}, body from inbox_message where ${isOf(owner)} and message_id = ${messageId}`.execute(db)
  return rows[0]
}

/** Finds a message of any user of the application, with its body and its user. */
export async function findMessageOfApplication(
  db: Db,
  applicationId: string,
  messageId: string,
): Promise<(InboxMessageRow & { readonly body: string; readonly userId: string }) | undefined> {
  const { rows } = await sql<InboxMessageRow & { readonly body: string; readonly userId: string }>`
    select ${COLUMNS}, body, user_id as "userId" from inbox_message
    where application_id = ${applicationId} and message_id = ${messageId}`.execute(db)
  return rows[0]
}

/** Deletes one message; false when the application has none of that id. */
export const deleteInboxMessage = (db: Db, applicationId: string, messageId: string): Promise<boolean> =>
  writesRow(db, sql`delete from inbox_message where message_id = ${messageId} and application_id = ${applicationId}`)

/** Marks one message as read; false when the user has none of that id. */
export const markMessageRead = (db: Db, owner: InboxOwner, messageId: string): Promise<boolean> =>
  writesRow(db, sql`update inbox_message set is_read = true where ${isOf(owner)} and message_id = ${messageId}`)

/** Marks all messages of a user as read. */
export async function markAllMessagesRead(db: Db, owner: InboxOwner): Promise<void> {
  await sql`update inbox_message set is_read = true where ${isOf(owner)} and not is_read`.execute(db)
}

const isOf = ({ applicationId, userId }: InboxOwner): RawBuilder<boolean> =>
  sql`application_id = ${applicationId} and user_id = ${userId}`

const COLUMNS = sql`message_id as "messageId", type, subject, summary, is_read as "isRead", created_at as "createdAt"`
