// Activations of protocol 4.0. Their secret, keys and counter stand where those of 3.x do. Upgrades of those of 3.x wait beside.
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const statements = [
  // With an algorithm, server_public_key, server_private_key and device_public_key hold the keys of all its signatures, and master_secret
  // holds KEY_ACTIVATION_SECRET with the factor keys.
  `alter table activation
    add column algorithm text check (algorithm in ('EC_P384', 'EC_P384_ML_L3', 'EC_P384_ML_L5')), -- null in protocol 3
    add column is_confirmation_pending boolean not null default false,
    add column is_biometry_enabled boolean`, // null in protocol 3, where the phone alone decides
  // The side of protocol 4 of an activation of protocol 3, until its phone confirms. Sealed for the columns of activation.
  `create table activation_upgrade (
    activation_id text primary key references activation,
    algorithm text not null check (algorithm in ('EC_P384', 'EC_P384_ML_L3', 'EC_P384_ML_L5')),
    device_public_key bytea not null,
    server_public_key bytea not null,
    server_private_key bytea not null, -- sealed
    master_secret bytea not null, -- sealed
    ctr_data bytea not null, -- sealed
    counter integer not null,
    activation_fingerprint text not null,
    is_biometry_enabled boolean not null
  )`,
]
