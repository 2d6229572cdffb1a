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
export const findOidcProvider = (db: Db, applicationId: string, providerId: string): Promise<OidcProviderRow | undefined> =>
  db
    .selectFrom('oidc_provider')
    .select(columns)
    .where('application_id', '=', applicationId)
    .where('provider_id', '=', providerId)
    .executeTakeFirst()

/** Lists the providers of an application in order of id. */
export const listOidcProviders = (db: Db, applicationId: string): Promise<readonly OidcProviderRow[]> =>
  db.selectFrom('oidc_provider').select(columns).where('application_id', '=', applicationId).orderBy('provider_id').execute()

/** Stores a provider, replacing one with the same id. */
export async function storeOidcProvider(
  db: Db,
  { applicationId, providerId, settings, credentials }: OidcProviderRow,
  at: Date,
): Promise<void> {
  await db
    .insertInto('oidc_provider')
    .values({ application_id: applicationId, provider_id: providerId, settings, credentials, created_at: at, updated_at: at })
    .onConflict((conflict) =>
      conflict.columns(['application_id', 'provider_id']).doUpdateSet({ settings, credentials, updated_at: at }),
    )
    .execute()
}

/** Deletes a provider; false when there was none. */
export const deleteOidcProvider = (db: Db, applicationId: string, providerId: string): Promise<boolean> =>
  writesRow(db, sql`delete from oidc_provider where application_id = ${applicationId} and provider_id = ${providerId}`)

const columns = ['application_id as applicationId', 'provider_id as providerId', 'settings', 'credentials'] as const
