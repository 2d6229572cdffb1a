// How far the audit log was delivered to a store outside, and which process delivers it.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  `create table audit_delivery (
    chain_id integer primary key,
    position bigint not null, -- of the last row that was taken
    seal bytea not null
  )`,
  // One row: the right to deliver, until a time.
  `create table audit_deliverer (
    is_one boolean primary key default true check (is_one),
    lease_id text not null,
    leased_until timestamptz not null
  )`,
  `insert into audit_deliverer (lease_id, leased_until) values ('', '-infinity')`,
]
