// A push token belongs to one activation: it is found again by a keyed hash (mobile-token §7).
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // Null for a token that was registered before; its phone gives it anew sooner or later.
  `alter table push_registration add column push_token_hash bytea`,
  `create unique index push_registration_token on push_registration (push_token_hash)`,
]
