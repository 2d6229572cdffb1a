// Stores the OpenID providers of an application in the table oidc_provider; a login there binds a phone without a code (cloud §10.1).
import { sql } from 'kysely'
import { type Db, writesRow } from '../database/database.ts'

export interface OidcProviderRow {
  readonly applicationId: string
  readonly providerId: string
  /** JSON. */
  readonly settings: string
  /** Sealed; null when the client has none. */
  readonly credentials: Uint8Array | null
}

/** Finds a provider of an application. */
export async function findOidcProvider(db: Db, applicationId: string, providerId: string): Promise<OidcProviderRow | undefined> {
  const { rows } = await sql<OidcProviderRow>`
    select ${COLUMNS} from oidc_provider where application_id = ${applicationId} and provider_id = ${providerId}`.execute(db)
  return rows[0]
}

/** Lists the providers of an application in order of id. */
export async function listOidcProviders(db: Db, applicationId: string): Promise<readonly OidcProviderRow[]> {
  const { rows } = await sql<OidcProviderRow>`
    select ${COLUMNS} from oidc_provider where application_id = ${applicationId} order by provider_id`.execute(db)
  return rows
}

/** Stores a provider, replacing one with the same id. */
export async function storeOidcProvider(
  db: Db,
  { applicationId, providerId, settings, credentials }: OidcProviderRow,
  at: Date,
): Promise<void> {
  await sql`
    insert into oidc_provider (application_id, provider_id, settings, credentials, created_at, updated_at)
    values (${applicationId}, ${providerId}, ${settings}, ${credentials}, ${at}, ${at})
    on conflict (application_id, provider_id) do update
    set settings = excluded.settings, credentials = excluded.credentials, updated_at = excluded.updated_at`.execute(db)
}

/** Deletes a provider; false when there was none. */
export const deleteOidcProvider = (db: Db, applicationId: string, providerId: string): Promise<boolean> =>
  writesRow(db, sql`delete from oidc_provider where application_id = ${applicationId} and provider_id = ${providerId}`)

const COLUMNS = sql`application_id as "applicationId", provider_id as "providerId", settings, credentials`
