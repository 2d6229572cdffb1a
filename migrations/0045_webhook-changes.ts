// Counts the changes of a webhook by administrators: an answer to a message that was sent before the last change tells nothing about the receiver of
// now (cloud §9).
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table webhook add column change_count integer not null default 0`.execute(db)
}
