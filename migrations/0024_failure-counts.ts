// Failures that several processes count together: of codes and requests of phones, and of passwords (0001-work-for-strangers).
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

// Unlogged: a crash of the database forgets what was counted within minutes, and nothing waits for the disk.
const statements = [
  `create unlogged table failure_count (
    failure_key bytea primary key, -- keyed hash of what failed and from where
    failures integer not null, -- since the begin of the window
    ends_at timestamptz not null, -- of the window
    waits integer not null, -- in a row, of passwords
    wait_ends_at timestamptz not null
  ) with (fillfactor = 50)`,
]
