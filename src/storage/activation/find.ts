// Finds an activation: as a phone needs it with its keys, as the bank sees it, with its device keys, and for activation/status (v3 §9), whose
// callers of one moment share a read.
import { CompiledQuery, type RawBuilder, sql } from 'kysely'
import { APPLICATIONS_STATE } from '../application/applications.ts'
import { createSharedTrip } from '../database/batched-statement.ts'
import { defineAskedRows, toConstantText } from '../database/bulk-statement.ts'
import type { Db } from '../database/database.ts'
import type { ActivationAlgorithm, ActivationState } from '../database/schema.ts'
import { type OWNER_COLUMNS, type Read, REQUEST_COLUMNS, selectColumns, STATUS_COLUMNS } from './columns.ts'
import { type BlockColumns, blockExpiresAt, effectiveStateAt, isBlockOver, type SeenAt, stateAt } from './seen-state.ts'

/** An activation, and whose it is. */
export interface OwnedActivation extends Read<typeof OWNER_COLUMNS> {}

/** What a status tells of an activation, and what it is told under. */
export interface StatusRow extends Read<typeof STATUS_COLUMNS> {}

/** An activation as a device request needs it. */
export interface ActivationRow extends StatusRow, BlockColumns, Omit<Read<typeof REQUEST_COLUMNS>, 'serverPrivateKey'> {
  /** Set when this is what becomes of an activation of protocol 3 once its phone confirms (v4 §10). */
  readonly isUpgradePending?: true
  /** sealed; a remembered phone is without it */
  readonly serverPrivateKey?: Buffer
}

/** An activation that was read. */
export interface ReadActivationRow extends ActivationRow {
  /** sealed */
  readonly serverPrivateKey: Buffer
}

/** One activation by its id, in whatever state. */
export async function findActivation(db: Db, activationId: string, at: Date): Promise<ReadActivationRow | undefined> {
  const { rows } = await db.executeQuery<ReadActivationRow>(CompiledQuery.raw(FIND, [activationId, at]))
  return rows[0]
}

/** A registration as the bank sees it. */
export interface RegistrationRow extends BlockColumns {
  readonly activationId: string
  readonly state: ActivationState
  readonly rowVersion: number
  readonly expiresAt: Date
  /** sealed; until the key exchange */
  readonly activationQrCode: Buffer | null
  readonly name: string | null
  readonly platform: string | null
  readonly deviceInfo: string | null
  readonly activationFingerprint: string | null
}

/** The registrations of a user: the live activations, of which there is at most one where the application does not say otherwise. */
export async function findRegistrations(
  db: Db,
  applicationId: string,
  userId: string,
  at: Date,
): Promise<readonly RegistrationRow[]> {
  return db
    .selectFrom('registration')
    .select([
      'activation_id as activationId',
      stateAt(at).as('state'),
      blockExpiresAt(at).as('blockExpiresAt'),
      isBlockOver(at).as('isBlockOver'),
      'row_version as rowVersion',
      'expires_at as expiresAt',
      'activation_qr_code as activationQrCode',
      'name',
      'platform',
      'device_info as deviceInfo',
      'activation_fingerprint as activationFingerprint',
    ])
    .where('application_id', '=', applicationId)
    .where('user_id', '=', userId)
    .execute()
}

/** The device keys of an activation, for whoever verifies what they signed. */
export interface DeviceKeysRow {
  readonly activationId: string
  readonly userId: string
  readonly state: ActivationState
  /** Null before the key exchange. */
  readonly protocolVersion: number | null
  /** Null in protocol 3. */
  readonly algorithm: ActivationAlgorithm | null
  /** As the generation stores them; null before the key exchange. */
  readonly devicePublicKey: Buffer | null
}

/** An activation of this application, in whatever state; CREATED and PENDING_COMMIT that have run out are REMOVED. */
export async function findDeviceKeys(
  db: Db,
  { applicationId, activationId, at }: { readonly applicationId: string; readonly activationId: string; readonly at: Date },
): Promise<DeviceKeysRow | undefined> {
  const { rows } = await sql<DeviceKeysRow>`
    select activation_id as "activationId", user_id as "userId", ${effectiveStateAt(at)} as state, protocol_version as "protocolVersion",
      algorithm, device_public_key as "devicePublicKey"
    from activation where activation_id = ${activationId} and application_id = ${applicationId}`.execute(db)
  return rows[0]
}

/** What is selected of an activation `a` that is seen at a time, for the requests of its phone. */
export const selectActivation = (at: SeenAt): RawBuilder<unknown> =>
  sql`${selectColumns(STATUS_COLUMNS, at)}, ${blockExpiresAt(at)} as "blockExpiresAt", ${isBlockOver(at)} as "isBlockOver", ${selectColumns(REQUEST_COLUMNS, at)}`

const FIND = toConstantText(sql`
  select ${selectActivation(sql`$2`)} from activation a where a.activation_id = $1`)

/** Whose registration is asked for. */
export interface OwnerNames {
  /** Null for the default application. */
  readonly applicationId: string | null
  readonly userId: string
  /** The one of several that is meant. */
  readonly activationId?: string | null | undefined
}

/**
 * The application `p` that each row of `asked` names, and the live activation `a` of its user there; both may be missing. Where one of several is
 * not named, `a` is any of them. `limit 1`: joined as a table, `a` is searched by the application alone as long as PostgreSQL takes it for empty,
 * and it keeps that plan for a minute.
 */
export const fromOwners = (asked: RawBuilder<unknown>): RawBuilder<unknown> => sql`from ${asked} as i
  left join application p
    on p.application_id = coalesce(i."applicationId", (select application_id from application where is_default))
  left join lateral (
    select * from activation
    where application_id = p.application_id and user_id = i."userId" and state <> 'REMOVED'
      and activation_id = coalesce(i."activationId", activation_id) limit 1
  ) a on true`

/** What fromOwners reads, in the order of `position`. */
export const OWNERS = defineAskedRows<OwnerNames>({ applicationId: 'text', userId: 'text', activationId: 'text' })

interface StatusRead {
  /** Undefined when there is none of this id. */
  readonly activation: StatusRow | undefined
  /** As APPLICATIONS_STATE. */
  readonly applicationsState: string
}

interface StatusNames {
  readonly activationId: string
  readonly at: Date
}

/** Reads an activation, as it is seen at a time, and the state of the applications. */
export type StatusReader = (names: StatusNames) => Promise<StatusRead>

/** A reader of one process. */
export function createStatusReader(db: Db): StatusReader {
  return createSharedTrip(async (names) => {
    const { rows } = await db.executeQuery<StatusColumns>(FIND_STATUS(names))
    return rows.map(toStatusRead)
  })
}

type StatusColumns = { readonly [K in keyof StatusRow]: StatusRow[K] | null } & Pick<StatusRead, 'applicationsState'>

const toStatusRead = (row: StatusColumns): StatusRead => ({
  activation: row.activationId === null ? undefined : (row as StatusRow),
  applicationsState: row.applicationsState,
})

const FIND_STATUS = defineAskedRows<StatusNames>({ activationId: 'text', at: 'timestamptz' }).define(
  (asked) => sql`
  select ${APPLICATIONS_STATE} as "applicationsState", ${selectColumns(STATUS_COLUMNS, sql`i.at`)}
  from ${asked} as i left join activation a on a.activation_id = i."activationId"
  order by i.position`,
)
