// OpenID providers by whose login a phone is bound without a code (cloud §10.1).
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  `create table oidc_provider (
    application_id text not null references application,
    provider_id text not null,
    settings text not null, -- JSON
    credentials bytea, -- sealed: client secret or private key; null where the client has none
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (application_id, provider_id)
  )`,
]
