// Claims about users, a custom object for each application, the OTP of an activation, and the search for registrations.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // Personal data, so the claims are sealed. The user need not have a registration.
  `create table user_claims (
    application_id text not null references application,
    user_id text not null,
    claims bytea not null, -- sealed JSON object
    updated_at timestamptz not null,
    primary key (application_id, user_id)
  )`,

  `alter table application add column custom_object text`, // JSON object

  // An OTP is demanded in the phase that commits. However phases are asked for, the two are the same: an explicit OTP phase decides
  // where the activation is committed, an explicit commit phase decides where the OTP is demanded.
  `alter table activation
    add column commit_phase text not null default 'ON_COMMIT' check (commit_phase in ('ON_COMMIT', 'ON_KEY_EXCHANGE')),
    add column otp_hash bytea`, // salt (16) and keyed slow hash (32); until the commit
  `create index activation_newest on activation (application_id, created_at, activation_id)`,
  `create index activation_state on activation (application_id, state, created_at, activation_id)`,
]
