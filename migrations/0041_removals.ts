// What retention deletes is found by the time of its removal, which the history alone has.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // Under a condition of its own, as the indexes of 0027: statements that name an activation go on finding its history by its id. While the index is
  // built, what writes history waits: registrations, and changes of a state. Most codes write none.
  `create index activation_history_removed on activation_history (occurred_at) where case when to_state in ('REMOVED') then true end`,
]
