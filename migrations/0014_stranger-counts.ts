// Codes for activations that do not exist: counted, instead of a row of the audit log each (cloud §7).
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  `create table stranger_count (
    minute timestamptz not null, -- its begin
    network text not null, -- 24 bits of an IPv4 address, 64 of IPv6
    codes bigint not null,
    primary key (minute, network)
  )`,
]
