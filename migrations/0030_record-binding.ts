// Sealed records are bound to the user and the application of their row (docs/decisions/0008-no-mac-over-activations.md). The keys are outside of the
// database, so a server seals anew what is there already; as long as that has not ended there is a row, and records of before are opened.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  `create table record_binding (
    is_only boolean primary key default true check (is_only),
    stage text not null check (stage in ('OPEN', 'BEGUN')),
    begun_at timestamptz,
    mac bytea -- over the stage; null until the first start of a version that knows it
  )`,
  // Where no process has started there are no records.
  `insert into record_binding (stage) select 'OPEN' where exists (select from wrapped_key)`,
]
