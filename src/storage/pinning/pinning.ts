// Stores pinned certificates, their domains, and the key pairs that sign them (tables pinned_certificate, pinned_domain, pinning_key_pair; utility
// §4).
import { sql } from 'kysely'
import { countWritten, type Db, writesRow } from '../database/database.ts'
import type { CertificateSource } from '../database/schema.ts'

export interface PinningKeyPairRow {
  readonly publicKey: Buffer
  /** Sealed. */
  readonly privateKey: Buffer
}

/** Finds the pinning key pair of an application: null when it has none yet, undefined when there is no such application. */
export async function findPinningKeyPair(db: Db, applicationId: string): Promise<PinningKeyPairRow | null | undefined> {
  const { rows } = await sql<PinningKeyPairRow | { readonly publicKey: null }>`
    select k.public_key as "publicKey", k.private_key as "privateKey"
    from application p left join pinning_key_pair k on k.application_id = p.application_id
    where p.application_id = ${applicationId}`.execute(db)
  const [row] = rows
  return row?.publicKey === null ? null : row
}

interface NewPinningKeyPair {
  readonly applicationId: string
  readonly publicKey: Uint8Array
  /** Sealed. */
  readonly privateKey: Uint8Array
  readonly createdAt: Date
}

/** Stores a key pair, unless the application has one: another request may store one at the same time. */
export async function insertPinningKeyPair(db: Db, pair: NewPinningKeyPair): Promise<void> {
  await sql`
    insert into pinning_key_pair (application_id, public_key, private_key, created_at)
    values (${pair.applicationId}, ${pair.publicKey}, ${pair.privateKey}, ${pair.createdAt})
    on conflict (application_id) do nothing`.execute(db)
}

export interface PinnedCertificateRow {
  readonly domain: string
  /** SHA-256, 32 bytes. */
  readonly fingerprint: Uint8Array
  readonly expiresAt: Date
  readonly source: CertificateSource
  /** DER; null when only the fingerprint is known. */
  readonly certificate: Uint8Array | null
  readonly createdAt: Date
}

/** Lists all pinned certificates of an application, also expired ones, in order of domain and expiry. */
export async function listPinnedCertificates(db: Db, applicationId: string): Promise<readonly PinnedCertificateRow[]> {
  const { rows } = await sql<PinnedCertificateRow>`
    select ${CERTIFICATE_COLUMNS} from pinned_certificate where application_id = ${applicationId}
    order by domain collate "C", expires_at, fingerprint`.execute(db)
  return rows
}

/** Finds a pinned certificate. */
export async function findPinnedCertificate(
  db: Db,
  applicationId: string,
  domain: string,
  fingerprint: Uint8Array,
): Promise<PinnedCertificateRow | undefined> {
  const { rows } = await sql<PinnedCertificateRow>`
    select ${CERTIFICATE_COLUMNS} from pinned_certificate
    where application_id = ${applicationId} and domain = ${domain} and fingerprint = ${fingerprint}`.execute(db)
  return rows[0]
}

export interface NewCertificate extends PinnedCertificateRow {
  readonly applicationId: string
  /** The port at which the domain is watched; null keeps the stored one. */
  readonly port: number | null
}

/** Stores a certificate and its domain. A stored fingerprint is not changed, unless it had no certificate and the new row has one. */
export async function insertPinnedCertificate(db: Db, row: NewCertificate): Promise<void> {
  await sql`
    with parent as (
      insert into pinned_domain as d (application_id, domain, port, created_at, next_check_at)
      values (${row.applicationId}, ${row.domain}, coalesce(${row.port}::integer, 443), ${row.createdAt}, ${row.createdAt})
      on conflict (application_id, domain) do update set port = coalesce(${row.port}::integer, d.port)
      returning application_id, domain
    )
    insert into pinned_certificate as c (application_id, domain, fingerprint, expires_at, source, certificate, created_at)
    select application_id, domain, ${row.fingerprint}::bytea, ${row.expiresAt}::timestamptz, ${row.source}::text,
      ${row.certificate}::bytea, ${row.createdAt}::timestamptz
    from parent
    on conflict (application_id, domain, fingerprint) do update
    set expires_at = excluded.expires_at, source = excluded.source, certificate = excluded.certificate
    where c.certificate is null and excluded.certificate is not null`.execute(db)
}

/** Deletes one certificate; its domain stays. False when there was none. */
export const deletePinnedCertificate = (
  db: Db,
  applicationId: string,
  domain: string,
  fingerprint: Uint8Array,
): Promise<boolean> =>
  writesRow(
    db,
    sql`delete from pinned_certificate
      where application_id = ${applicationId} and domain = ${domain} and fingerprint = ${fingerprint}`,
  )

/** Deletes a domain of an application with its certificates; false when there was none. */
export const deletePinnedDomain = (db: Db, applicationId: string, domain: string): Promise<boolean> =>
  writesRow(db, sql`delete from pinned_domain where application_id = ${applicationId} and domain = ${domain}`)

/** Deletes expired certificates of all applications; returns their number. */
export const deleteExpiredCertificates = (db: Db, at: Date): Promise<number> =>
  countWritten(db, sql`delete from pinned_certificate where expires_at < ${at}`)

export interface PinnedDomainRow {
  readonly domain: string
  readonly port: number
  /** Null until the first check by the watcher. */
  readonly checkedAt: Date | null
  readonly liveFingerprint: Buffer | null
  readonly liveExpiresAt: Date | null
  readonly isChainTrusted: boolean | null
  /** The reason why no certificate was seen. */
  readonly problem: string | null
}

/** Lists the domains of an application by name, with the result of their last check. */
export async function listPinnedDomains(db: Db, applicationId: string): Promise<PinnedDomainRow[]> {
  return db
    .selectFrom('pinned_domain')
    .select([
      'domain',
      'port',
      'checked_at as checkedAt',
      'live_fingerprint as liveFingerprint',
      'live_expires_at as liveExpiresAt',
      'is_chain_trusted as isChainTrusted',
      'problem',
    ])
    .where('application_id', '=', applicationId)
    .orderBy(sql`domain collate "C"`)
    .execute()
}

export interface DueDomain {
  readonly applicationId: string
  readonly domain: string
  readonly port: number
}

interface DomainClaim {
  readonly at: Date
  /** The end of the claim: if this process dies during the check, another one may take the domain then. */
  readonly until: Date
  /** A check that is due later than this was scheduled before the clock was set back, and counts as due. */
  readonly latest: Date
}

/** Claims up to `limit` domains whose check is due, for this process alone. */
export async function claimDueDomains(db: Db, { at, until, latest }: DomainClaim, limit: number): Promise<DueDomain[]> {
  const { rows } = await sql<DueDomain>`
    update pinned_domain set next_check_at = ${until}
    where (application_id, domain) in (
      select application_id, domain from pinned_domain where next_check_at <= ${at} or next_check_at > ${latest}
      order by next_check_at limit ${limit} for update skip locked
    )
    returning application_id as "applicationId", domain, port`.execute(db)
  return rows
}

/** The result of a check. `checkedAt` is null when no check was possible. */
export interface DomainCheck extends Omit<PinnedDomainRow, 'port' | 'liveFingerprint'> {
  readonly applicationId: string
  readonly liveFingerprint: Uint8Array | null
  readonly nextCheckAt: Date
}

/**
 * Stores the result of a check. Returns true when the live certificate is pinned and not expired at `checkedAt`; undefined when the domain was
 * removed meanwhile.
 */
export async function storeDomainCheck(db: Db, check: DomainCheck): Promise<boolean | undefined> {
  const { rows } = await sql<{ isPinned: boolean }>`
    update pinned_domain d
    set checked_at = ${check.checkedAt}, next_check_at = ${check.nextCheckAt}, live_fingerprint = ${check.liveFingerprint},
      live_expires_at = ${check.liveExpiresAt}, is_chain_trusted = ${check.isChainTrusted}, problem = ${check.problem}
    where application_id = ${check.applicationId} and domain = ${check.domain}
    returning exists (
      select from pinned_certificate c
      where c.application_id = d.application_id and c.domain = d.domain and c.fingerprint = d.live_fingerprint
        and c.expires_at >= ${check.checkedAt}
    ) as "isPinned"`.execute(db)
  return rows[0]?.isPinned
}

const CERTIFICATE_COLUMNS = sql`domain, fingerprint, expires_at as "expiresAt", source, certificate, created_at as "createdAt"`
