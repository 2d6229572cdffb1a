// Challenges that a bank shows as QR codes, and whose one-time passwords it has verified.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // No reference to the activation: its check would write the row of the activation once more.
  `create table offline_challenge (
    challenge_id text primary key,
    application_id text not null,
    activation_id text, -- null where any phone of the application may answer
    terms bytea not null, -- sealed: what a password covers, and the seed of a proximity check
    attempts int not null default 0, -- judged so far
    asked_hash bytea, -- keyed hash of the request that took the latest attempt; null for one without a key
    expires_at timestamptz not null
  )`,
  'create index offline_challenge_due on offline_challenge (expires_at)',
]
