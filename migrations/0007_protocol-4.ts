// Activations of protocol 4.0. Their secret, keys and counter stand where those of 3.x do.
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
]
