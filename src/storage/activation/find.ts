// Finds an activation with its keys for a phone's request, without keys for the bank, with its device keys, and for activation/status (v3 §9),
// where concurrent calls share a read.
import { CompiledQuery, type RawBuilder, sql } from 'kysely'
import { APPLICATIONS_STATE } from '../application/applications.ts'
import { createSharedTrip } from '../database/batched-statement.ts'
import { defineAskedRows, toConstantText } from '../database/bulk-statement.ts'
import type { Db } from '../database/database.ts'
import type { ActivationAlgorithm, ActivationState } from '../database/schema.ts'
import { type OWNER_COLUMNS, type Read, REQUEST_COLUMNS, selectColumns, STATUS_COLUMNS } from './columns.ts'
import { type BlockColumns, blockExpiresAt, effectiveStateAt, isBlockOver, type SeenAt, stateAt } from './seen-state.ts'

/** The ids of an activation, its application and its user. */
export interface OwnedActivation extends Read<typeof OWNER_COLUMNS> {}

/** The columns that a status answer needs, for its content and its encryption. */
export interface StatusRow extends Read<typeof STATUS_COLUMNS> {}

/** The columns of an activation that a phone's request needs. */
export interface ActivationRow extends StatusRow, BlockColumns, Omit<Read<typeof REQUEST_COLUMNS>, 'serverPrivateKey'> {
  /** Set when the row is the pending upgrade of an activation of protocol 3: its phone still has to confirm it (v4 §10). */
  readonly isUpgradePending?: true
  /** Sealed; absent for a phone that the process remembers. */
  readonly serverPrivateKey?: Buffer
}

/** An activation as read from the database. */
export interface ReadActivationRow extends ActivationRow {
  /** Sealed. */
  readonly serverPrivateKey: Buffer
}

/** Finds an activation by its id, in any state. */
export async function findActivation(db: Db, activationId: string, at: Date): Promise<ReadActivationRow | undefined> {
  const { rows } = await db.executeQuery<ReadActivationRow>(CompiledQuery.raw(FIND, [activationId, at]))
  return rows[0]
}

/** A registration as the bank's API shows it. */
export interface RegistrationRow extends BlockColumns {
  readonly activationId: string
  readonly state: ActivationState
  readonly rowVersion: number
  readonly expiresAt: Date
  /** Sealed; null after the key exchange. */
  readonly activationQrCode: Buffer | null
  readonly name: string | null
  readonly platform: string | null
  readonly deviceInfo: string | null
  readonly activationFingerprint: string | null
}

/** Lists the live activations of a user, or the one with this id: at most one, unless the application allows several phones. */
export async function findRegistrations(
  db: Db,
  applicationId: string,
  userId: string,
  at: Date,
  activationId?: string,
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
    .$if(activationId !== undefined, (query) => query.where('activation_id', '=', String(activationId)))
    .execute()
}

/** The device keys of an activation, with which signatures of its phone are verified. */
export interface DeviceKeysRow {
  readonly activationId: string
  readonly userId: string
  readonly state: ActivationState
  /** Null before the key exchange. */
  readonly protocolVersion: number | null
  /** Null in protocol 3. */
  readonly algorithm: ActivationAlgorithm | null
  /** In the encoding that the generation stores; null before the key exchange. */
  readonly devicePublicKey: Buffer | null
}

/**
 * Finds the device keys of an activation of this application, in any state. Expired CREATED and PENDING_COMMIT activations are shown as REMOVED.
 */
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

/** Selects the columns of an activation `a`, as seen at a time, that a phone's request needs. */
export const selectActivation = (at: SeenAt): RawBuilder<unknown> =>
  sql`${selectColumns(STATUS_COLUMNS, at)}, ${blockExpiresAt(at)} as "blockExpiresAt", ${isBlockOver(at)} as "isBlockOver", ${selectColumns(REQUEST_COLUMNS, at)}`

const FIND = toConstantText(sql`
  select ${selectActivation(sql`$2`)} from activation a where a.activation_id = $1`)

/** Names an application, a user, and one of the user's registrations. */
export interface OwnerNames {
  /** Null for the default application. */
  readonly applicationId: string | null
  readonly userId: string
  /** Names one of several activations. */
  readonly activationId?: string | null | undefined
}

/**
 * Joins the application `p` that each row of `asked` names, and the live activation `a` of the user in it; both may be missing. When the user has
 * several and none is named, `a` is any of them. `limit 1` is for the planner: in a plain join PostgreSQL would search `a` by the application alone
 * as long as it takes the table for empty, and it keeps that plan for a minute.
 */
export const fromOwners = (asked: RawBuilder<unknown>): RawBuilder<unknown> => sql`from ${asked} as i
  left join application p
    on p.application_id = coalesce(i."applicationId", (select application_id from application where is_default))
  left join lateral (
    select * from activation
    where application_id = p.application_id and user_id = i."userId" and state <> 'REMOVED'
      and activation_id = coalesce(i."activationId", activation_id) limit 1
  ) a on true`

/** The rows that fromOwners takes, in the order of `position`. */
export const OWNERS = defineAskedRows<OwnerNames>({ applicationId: 'text', userId: 'text', activationId: 'text' })

interface StatusRead {
  /** Undefined when no activation has this id. */
  readonly activation: StatusRow | undefined
  /** The text of APPLICATIONS_STATE. */
  readonly applicationsState: string
}

interface StatusNames {
  readonly activationId: string
  readonly at: Date
}

/** Reads an activation as seen at a time, and the state of the applications. */
export type StatusReader = (names: StatusNames) => Promise<StatusRead>

/** Makes the reader of a process; its concurrent calls share a statement. */
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
