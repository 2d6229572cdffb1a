// What the bank tells its mobile apps: settings of an application, or of one activation (v4 §9.11).
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // An application may have a key in both scopes; an item of one activation is seen by that activation only.
  `create table config_item (
    application_id text not null references application,
    activation_id text references activation, -- null: of the application
    scope text not null check (scope in ('APPLICATION', 'ACTIVATION')),
    key text not null,
    value text not null, -- JSON
    updated_at timestamptz not null,
    check (activation_id is null or scope = 'ACTIVATION'),
    constraint config_item_key unique nulls not distinct (application_id, activation_id, scope, key)
  )`,
]
