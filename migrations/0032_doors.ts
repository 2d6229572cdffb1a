// What a bank has checked for its own endpoints: the role of a credential that may ask, what was answered to a request that may come again, and
// in whose name a code was checked.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  `alter table credential drop constraint credential_role_check`,
  `alter table credential add constraint credential_role_check
    check (role in ('admin', 'integration', 'internal', 'read-only', 'verification'))`,
  // No code, no body and no name of a user. No reference to the activation: its check would write the row of the activation once more.
  `create table door_verdict (
    key_hash bytea primary key, -- keyed hash of the credential and its key
    activation_id text not null,
    answer text not null, -- JSON
    expires_at timestamptz not null,
    mac bytea not null -- over what was asked and the columns above
  )`,
  `create index door_verdict_due on door_verdict (expires_at)`,
  // User name of the credential for which it was checked; null for what a phone sent to pawl itself.
  `alter table audit_pending add column verified_by text`,
  `alter table audit_log add column verified_by text`,
  `create or replace view audit_trail as
    select activation_id, sequence, occurred_at, application_id, user_id, event_type, event_data, sealed_at, verified_by from audit_log
    union all
    select activation_id, sequence, occurred_at, application_id, user_id, event_type, event_data, 'infinity', verified_by from audit_pending`,
]
