// Inserts a new activation, and reads the data that a registration is made from.
import { sql } from 'kysely'
import type { MasterKeyPairRow } from '../application/applications.ts'
import { type AuditEvent, insertAuditFrom } from '../audit/audit.ts'
import type { Db } from '../database/database.ts'
import { defineGivenRows } from '../database/bulk-statement.ts'
import { defineSharedTrip } from '../database/batched-statement.ts'
import { slotOf } from './device-slot.ts'
import { fromOwners, type OwnerNames, OWNERS } from './find.ts'
import { insertHistoryFrom } from './history.ts'
import {
  givenColumns,
  insertColumns,
  LIVE_COLUMNS,
  NEW_COLUMNS,
  OWNER_COLUMNS,
  type Read,
  selectColumns,
  type Written,
} from './columns.ts'

/** The data that a registration is made from. */
export interface RegistrationBasis {
  readonly applicationId: string
  readonly isProtocol3Admitted: boolean
  /** A user may have several live activations. */
  readonly isMultiDevice: boolean
  /**
   * The key pair that signs the activation code: on P-256 where protocol 3 is admitted, else on P-384. Undefined when an older application has
   * none.
   */
  readonly signingKey: MasterKeyPairRow | undefined
  /** The live activation of the user; with several, any of them. */
  readonly existing: LiveActivation | undefined
}

export interface LiveActivation extends Read<typeof LIVE_COLUMNS> {}

/** Reads the data in one statement, which concurrent calls share. Undefined when there is no such application. */
export const findRegistrationBasis = defineSharedTrip(
  async (db, owners: readonly OwnerNames[]): Promise<readonly (RegistrationBasis | undefined)[]> => {
    const { rows } = await db.executeQuery<BasisRow>(FIND_BASIS(owners))
    return rows.map(toBasis)
  },
)

const toBasis = (row: BasisRow): RegistrationBasis | undefined =>
  row.applicationId === null
    ? undefined
    : {
        applicationId: row.applicationId,
        isProtocol3Admitted: row.isProtocol3Admitted,
        isMultiDevice: row.isMultiDevice,
        signingKey: row.masterKeyPairId === null ? undefined : (row as MasterKeyPairRow),
        existing: row.activationId === null ? undefined : (row as LiveActivation),
      }

/** A CREATED activation. */
export interface NewActivationRow extends Written<typeof OWNER_COLUMNS>, Written<typeof NEW_COLUMNS> {}

/** A CREATED activation with its audit row. */
interface ActivationToInsert {
  readonly row: NewActivationRow
  readonly audit: AuditEvent
}

/**
 * Inserts a CREATED activation with a history and an audit row. Throws a unique violation when the user has a live activation and may have no
 * other, or when the code exists.
 */
export async function insertActivation(db: Db, activation: ActivationToInsert): Promise<void> {
  await db.executeQuery(INSERT([toNewRow(activation)]))
}

const toNewRow = ({ row, audit: { eventType, eventData, verifiedBy } }: ActivationToInsert): NewRow => ({
  ...row,
  eventType,
  eventData,
  verifiedBy,
})

type BasisRow =
  | { readonly applicationId: null }
  | (Pick<RegistrationBasis, 'applicationId' | 'isProtocol3Admitted' | 'isMultiDevice'> &
      ({ readonly activationId: null } | LiveActivation) &
      ({ readonly masterKeyPairId: null } | MasterKeyPairRow))

const FIND_BASIS = OWNERS.define(
  (asked) => sql`
  select p.application_id as "applicationId", p.is_protocol_3_admitted as "isProtocol3Admitted", p.is_multi_device as "isMultiDevice",
    m.master_key_pair_id as "masterKeyPairId", m.algorithm, m.public_key as "publicKey", m.private_key as "privateKey",
    ${selectColumns(LIVE_COLUMNS)}
  ${fromOwners(asked)}
  left join master_key_pair m on m.application_id = p.application_id
    and m.algorithm = case when p.is_protocol_3_admitted then 'EC_P256' else 'EC_P384' end
  order by i.position`,
)

/** The history's reason for an activation whose code another activation asked for. */
const REASON = sql`case when parent_activation_id is not null then case when replaces_parent then 'MOVE' else 'SPAWN' end end`

type NewRow = NewActivationRow & Pick<AuditEvent, 'eventType' | 'eventData' | 'verifiedBy'>

const [OWNER, NEW] = [insertColumns(OWNER_COLUMNS), insertColumns(NEW_COLUMNS)]

const INSERT = defineGivenRows<NewRow>({
  ...givenColumns(OWNER_COLUMNS),
  ...givenColumns(NEW_COLUMNS),
  eventType: 'text',
  eventData: 'text',
  verifiedBy: 'text',
}).define(
  (given) => sql`
  with created as (
    insert into activation (${OWNER.names}, state, device_slot, ${NEW.names})
    select ${OWNER.values}, 'CREATED', ${slotOf(sql`i."applicationId"`, sql`i."activationId"`)}, ${NEW.values} from ${given} as i
    returning activation_id, application_id, user_id, state, created_at, parent_activation_id, replaces_parent
  ), history as (
    ${insertHistoryFrom(sql`created`, { to: sql`state`, reason: REASON, at: sql`created_at` })}
  )
  ${insertAuditFrom(sql`created join ${given} as i on i."activationId" = activation_id`, {
    eventType: sql`i."eventType"`,
    eventData: sql`i."eventData"`,
    occurredAt: sql`created_at`,
    verifiedBy: sql`i."verifiedBy"`,
  })}
  returning activation_id`,
)
