// An app of the bank that is bound lets another one on the same phone be bound (mobile-token §9).
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // JSON: to which applications the phones of this one may hand over, and how.
  `alter table application add column transfers text not null default '[]'`,
  // The activation that asked for the code, of another application. No reference: it may be erased before.
  'alter table activation add column parent_activation_id text',
  // The parent ends in the statement that makes this one ACTIVE.
  'alter table activation add column replaces_parent boolean not null default false',
]
