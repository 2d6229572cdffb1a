// What the mobile utility publishes: a signing key for each application, pinned certificates, and which versions of an app are too old.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  `alter table application add column display_name text`,

  // Applications of earlier releases get theirs when it is first asked for.
  `create table pinning_key_pair (
    application_id text primary key references application,
    public_key bytea not null, -- uncompressed point
    private_key bytea not null, -- sealed
    created_at timestamptz not null
  )`,

  // One row a domain of an application, with what the watcher saw there last; kept when its last certificate goes.
  `create table pinned_domain (
    application_id text not null references application,
    domain text not null, -- lower case, IDN as punycode
    port integer not null default 443,
    created_at timestamptz not null,
    next_check_at timestamptz not null,
    checked_at timestamptz,
    live_fingerprint bytea,
    live_expires_at timestamptz,
    is_chain_trusted boolean,
    problem text,
    primary key (application_id, domain)
  )`,
  `create index pinned_domain_due on pinned_domain (next_check_at)`,

  `create table pinned_certificate (
    application_id text not null,
    domain text not null,
    fingerprint bytea not null, -- SHA-256 of the DER bytes
    expires_at timestamptz not null,
    source text not null check (source in ('pem', 'fetch', 'fingerprint')),
    certificate bytea, -- DER; null where only the fingerprint is known
    created_at timestamptz not null,
    primary key (application_id, domain, fingerprint),
    foreign key (application_id, domain) references pinned_domain on delete cascade
  )`,
  `create index pinned_certificate_due on pinned_certificate (expires_at)`,

  // Without a major version of the operating system a rule holds where no other does.
  `create table version_rule (
    version_rule_id integer generated always as identity primary key,
    application_id text not null references application,
    platform text not null check (platform in ('ANDROID', 'IOS')),
    major_os_version integer,
    suggested_version text,
    required_version text,
    message_key text,
    created_at timestamptz not null,
    unique nulls not distinct (application_id, platform, major_os_version)
  )`,
  `create table version_text (
    message_key text not null,
    language text not null, -- two letters
    text text not null,
    primary key (message_key, language)
  )`,
]
