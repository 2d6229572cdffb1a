// The highest protocol version that a phone has spoken, and the lowest that an application still takes (v3 §10.5).
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  `alter table activation add column highest_version text`, // null: not known, from before this column
  `alter table application add column minimum_version text`, // null: any
]
