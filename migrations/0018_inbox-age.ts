// Inbox messages are deleted when they are old, whoever they are of.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index inbox_message_age on inbox_message (created_at)`.execute(db)
}
