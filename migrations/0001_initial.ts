// Applications, activations, tokens, keys, credentials and the audit log.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

// Columns named "sealed" in their comment hold records encrypted under the master key; see docs/ARCHITECTURE.md, "Secrets at rest".
const statements = [
  // Random keys of the installation, wrapped under the master key, so that its rotation invalidates nothing.
  `create table wrapped_key (
    purpose text primary key,
    wrapped_key bytea not null, -- sealed
    created_at timestamptz not null
  )`,

  `create table application (
    application_id text primary key,
    is_default boolean not null default false,
    vault_factors text not null default 'POSSESSION_KNOWLEDGE', -- comma list
    created_at timestamptz not null
  )`,
  `create unique index application_default on application (is_default) where is_default`,

  `create table application_version (
    application_key text primary key, -- Base64 of 16 bytes
    application_id text not null references application,
    name text not null,
    application_secret bytea not null, -- sealed
    is_supported boolean not null default true,
    created_at timestamptz not null,
    unique (application_id, name)
  )`,

  `create table master_key_pair (
    master_key_pair_id text primary key,
    application_id text not null references application,
    algorithm text not null,
    public_key bytea not null, -- uncompressed point
    private_key bytea not null, -- sealed
    created_at timestamptz not null
  )`,
  `create index master_key_pair_newest on master_key_pair (application_id, algorithm, created_at)`,

  // Every change of state, counter, failed attempts or keys increments row_version: it is what a conditional write compares.
  `create table activation (
    activation_id text primary key,
    application_id text not null references application,
    user_id text not null,
    state text not null check (state in ('CREATED', 'PENDING_COMMIT', 'ACTIVE', 'BLOCKED', 'REMOVED')),
    protocol_version integer, -- generation, from the key exchange on
    activation_code_hash bytea not null, -- keyed
    activation_qr_code bytea, -- sealed; until the key exchange
    server_public_key bytea not null,
    server_private_key bytea not null, -- sealed
    device_public_key bytea,
    activation_fingerprint text, -- from the key exchange on
    master_secret bytea, -- sealed
    ctr_data bytea, -- sealed
    counter integer not null default 0,
    failed_attempts integer not null default 0,
    max_failed_attempts integer not null check (max_failed_attempts > 0),
    blocked_reason text,
    name text,
    platform text,
    device_info text,
    extras text,
    external_id text,
    row_version integer not null default 1,
    created_at timestamptz not null,
    expires_at timestamptz not null, -- of CREATED and PENDING_COMMIT
    last_used_at timestamptz,
    unique (application_id, activation_code_hash)
  ) with (fillfactor = 70)`,
  `create unique index activation_live on activation (application_id, user_id) where state <> 'REMOVED'`,
  `create index activation_due on activation (expires_at) where state in ('CREATED', 'PENDING_COMMIT')`,
  `create index activation_user on activation (application_id, user_id, created_at)`,

  // What the bank sees: the live activation of a user, at most one in an application.
  `create view registration as
    select activation_id, application_id, user_id, state, row_version, expires_at, activation_qr_code, name, platform, device_info,
      activation_fingerprint
    from activation where state <> 'REMOVED'`,

  `create table activation_history (
    activation_history_id bigint generated always as identity primary key,
    activation_id text not null references activation,
    from_state text,
    to_state text not null,
    reason text,
    external_user_id text,
    occurred_at timestamptz not null
  )`,
  `create index activation_history_activation on activation_history (activation_id, activation_history_id)`,

  `create table token (
    token_id text primary key,
    activation_id text not null references activation,
    factors text not null,
    token_secret bytea not null, -- sealed
    created_at timestamptz not null
  )`,
  `create index token_activation on token (activation_id)`,

  `create table temporary_key (
    temporary_key_id text primary key,
    application_key text not null references application_version,
    activation_id text references activation,
    private_key bytea not null, -- sealed
    expires_at timestamptz not null
  )`,
  `create index temporary_key_due on temporary_key (expires_at)`,

  // Values that may be used once: nonces of envelopes and of token headers, hashed.
  `create table unique_value (
    value_hash bytea primary key,
    expires_at timestamptz not null
  )`,
  `create index unique_value_due on unique_value (expires_at)`,

  `create table credential (
    username text primary key,
    role text not null check (role in ('admin', 'integration', 'internal')),
    application_id text references application,
    salt bytea not null, -- of all its passwords, so that one slow hash checks them all
    is_disabled boolean not null default false,
    expires_at timestamptz,
    created_at timestamptz not null
  )`,
  // Two passwords may be valid at once while a caller moves to the new one.
  `create table credential_password (
    credential_password_id text primary key,
    username text not null references credential on delete cascade,
    scheme text not null check (scheme in ('generated', 'chosen')),
    password_hash bytea not null, -- keyed
    expires_at timestamptz,
    created_at timestamptz not null
  )`,
  `create index credential_password_username on credential_password (username)`,

  // Append only. The seal is filled in by a background job that chains committed rows in sequence order.
  `create table audit_event (
    sequence bigint generated always as identity primary key,
    application_id text,
    user_id text,
    activation_id text not null,
    event_type text not null,
    event_data text not null,
    occurred_at timestamptz not null,
    seal bytea
  )`,
  `create index audit_event_user on audit_event (application_id, user_id, occurred_at)`,
]
