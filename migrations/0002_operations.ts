// Operations with their templates, nonces and idempotency keys; what the mobile token API stores; activation flags.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // Never changed once written, so that an operation keeps the texts it was created with whatever becomes of the template.
  `create table template_revision (
    template_revision_id text primary key,
    template_name text not null,
    operation_type text not null,
    data_template text not null,
    signature_types text not null, -- comma list
    max_failure_count integer not null check (max_failure_count > 0),
    expiration_seconds integer not null check (expiration_seconds > 0),
    risk_flags text not null,
    is_proximity_check_enabled boolean not null,
    activation_flag text,
    texts text not null, -- JSON, by language
    created_at timestamptz not null
  )`,
  `create table template (
    template_name text primary key,
    template_revision_id text not null references template_revision,
    source text not null check (source in ('shipped', 'file', 'administration'))
  )`,

  // A change of status or failure_count is one update that compares status = 'PENDING'.
  `create table operation (
    operation_id text primary key,
    application_id text not null references application,
    user_id text, -- null until claimed
    external_id text,
    template_revision_id text not null references template_revision,
    template_name text not null,
    operation_type text not null,
    language text not null,
    parameters text not null, -- JSON, as given
    data text not null,
    status text not null check (status in ('PENDING', 'APPROVED', 'REJECTED', 'CANCELED', 'EXPIRED', 'FAILED')),
    status_reason text,
    signature_types text not null, -- comma list
    failure_count integer not null default 0,
    max_failure_count integer not null,
    risk_flags text not null,
    activation_flag text,
    proximity_seed bytea, -- sealed
    additional_data text, -- JSON
    created_at timestamptz not null,
    expires_at timestamptz not null,
    finalized_at timestamptz
  )`,
  `create index operation_pending on operation (application_id, user_id, created_at desc) where status = 'PENDING'`,
  `create index operation_user on operation (application_id, user_id, created_at desc)`,
  `create index operation_newest on operation (application_id, created_at desc, operation_id desc)`,
  `create index operation_status on operation (application_id, status, created_at desc, operation_id desc)`,
  `create index operation_due on operation (expires_at) where status = 'PENDING'`,

  `create table operation_nonce (
    operation_id text not null references operation,
    nonce text not null, -- Base64 of 16 bytes
    created_at timestamptz not null,
    primary key (operation_id, nonce)
  )`,

  `create table idempotency_key (
    username text not null,
    idempotency_key text not null,
    body_hash bytea not null,
    operation_id text not null, -- taken before the operation is written
    expires_at timestamptz not null,
    primary key (username, idempotency_key)
  )`,
  `create index idempotency_key_due on idempotency_key (expires_at)`,

  `create table push_registration (
    activation_id text primary key references activation,
    platform text not null check (platform in ('apns', 'fcm', 'hms')),
    environment text check (environment in ('development', 'production')),
    push_token bytea not null, -- sealed
    updated_at timestamptz not null
  )`,

  `create table inbox_message (
    message_id text primary key,
    application_id text not null references application,
    user_id text not null,
    type text not null check (type in ('text', 'html')),
    subject text not null,
    summary text not null,
    body text not null,
    is_read boolean not null default false,
    created_at timestamptz not null
  )`,
  `create index inbox_message_user on inbox_message (application_id, user_id, created_at desc)`,

  `alter table activation add column flags text not null default ''`, // comma list
]
