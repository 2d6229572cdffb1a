// A user may have several phones in an application that says so (docs/decisions/0007-one-live-registration.md). One that lives has a slot: where a user
// has one phone it is empty, else it is its own id. A code does not change it, so that it stays HOT.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  `alter table application add column is_multi_device boolean not null default false`,
  `alter table activation add column device_slot text not null default ''`,
  // Under another name first: the older one holds until the newer one does.
  `create unique index activation_live_slot on activation (application_id, user_id, device_slot) where state <> 'REMOVED'`,
  `drop index activation_live`,
  `alter index activation_live_slot rename to activation_live`,
]
