// Sessions of the console: who is signed in there, by a credential of the cloud API.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  `create table console_session (
    session_id text primary key, -- for people; it opens nothing
    token_hash bytea not null unique, -- SHA-256 of what the cookie holds
    username text not null references credential (username) on delete cascade,
    credential_mac bytea not null, -- of the credential as it was; a change of it ends the session
    source text not null, -- address of the browser
    created_at timestamptz not null,
    last_seen_at timestamptz not null,
    expires_at timestamptz not null, -- whatever is done in it
    mac bytea not null -- over all but the last use: nobody signs in by writing a row
  )`,
]
