// The sealing of the audit log, what administrators changed, and the role that only reads.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // Append only, written in the transaction of the change.
  `create table admin_event (
    sequence bigint generated always as identity primary key,
    username text not null,
    action text not null,
    target text not null,
    before text, -- JSON
    after text, -- JSON
    occurred_at timestamptz not null
  )`,

  // Seals stand beside the rows and not in them: the tables of events are never updated, and an insert pays nothing for being unsealed.
  `alter table audit_event drop column seal`,
  `create table audit_chain (
    chain_id integer generated always as identity primary key,
    name text not null unique,
    start_position bigint not null, -- of the last row that retention removed
    start_seal bytea not null,
    head_position bigint not null,
    head_seal bytea not null,
    authentication bytea not null -- MAC over the columns above
  )`,
  // Positions have no gaps, unlike sequences, which rollbacks lose and which become visible in another order than they were handed out.
  `create table audit_seal (
    chain_id integer not null,
    position bigint not null,
    sequence bigint not null,
    seal bytea not null,
    primary key (chain_id, position),
    unique (chain_id, sequence)
  )`,
  // One row for each table that is sealed. Its lock is the right to seal; every row up to settled_sequence is sealed.
  `create table audit_source (
    source text primary key,
    settled_sequence bigint not null default 0
  )`,
  `insert into audit_source (source) values ('audit_event'), ('admin_event')`,

  `alter table credential drop constraint credential_role_check`,
  `alter table credential add constraint credential_role_check check (role in ('admin', 'integration', 'internal', 'read-only'))`,
]
