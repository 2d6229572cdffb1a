// What changes tables that requests use, apart from the copying of the log, which takes long: seals of what administrators changed, and keys.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // Administrators change little: their rows get the seal by an update.
  `alter table admin_event add column position bigint`,
  `alter table admin_event add column seal bytea`,
  `update admin_event e set position = s.position, seal = s.seal
    from audit_seal s join audit_chain c on c.chain_id = s.chain_id
    where c.name = 'administration' and e.sequence = s.sequence`,
  `create index admin_event_unsealed on admin_event (sequence) where position is null`,
  `create index admin_event_position on admin_event (position)`,

  // Keys begin with what rows would be spread by.
  `alter table activation_history drop constraint activation_history_pkey,
    add constraint activation_history_pkey primary key (activation_id, activation_history_id)`,
  `drop index activation_history_activation`,
  `create index inbox_message_id on inbox_message (message_id)`,
  `alter table inbox_message drop constraint inbox_message_pkey,
    add constraint inbox_message_pkey primary key (user_id, message_id)`,
]
