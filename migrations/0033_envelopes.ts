// Rights of credentials; answers that were sealed for the bank, each under a ticket that seals once; and when a restored database was fenced.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  `alter table credential add column rights text not null default ''`, // comma list in alphabetical order, inside the MAC
  `create table sealed_answer (
    ticket_id bytea primary key,
    plaintext_hash bytea not null, -- HMAC: who reads the table learns nothing of the answer
    sealed_at timestamptz not null, -- by the clock of the database, in whole milliseconds: the envelope has this time
    expires_at timestamptz not null -- of the last ticket of this id
  )`,
  'create index sealed_answer_ended on sealed_answer (expires_at)',
  // Tickets of before are good no more: the database may have forgotten what they sealed.
  'create table ticket_fence (fenced_at timestamptz primary key)',
]
