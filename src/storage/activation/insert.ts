// A new activation: what a registration is made from, and its row.
import { sql } from 'kysely'
import type { MasterKeyPairRow } from '../application/applications.ts'
import { type AuditEvent, insertAuditFrom } from '../audit/audit.ts'
import type { Db } from '../database/database.ts'
import { defineGivenRows } from '../database/bulk-statement.ts'
import type { ActivationState, CommitPhase } from '../database/schema.ts'
import { defineSharedTrip } from '../database/batched-statement.ts'
import { fromOwners, type OwnerNames, OWNERS } from './find.ts'
import { insertHistoryFrom } from './history.ts'

/** What a registration is made from. */
export interface RegistrationBasis {
  readonly applicationId: string
  readonly isProtocol3Admitted: boolean
  /** What signs its code: on P-256 where protocol 3 is admitted, else on P-384. Undefined where an older application has none. */
  readonly signingKey: MasterKeyPairRow | undefined
  /** The live activation of the user. */
  readonly existing: LiveActivation | undefined
}

export interface LiveActivation {
  readonly activationId: string
  readonly state: ActivationState
  readonly rowVersion: number
  readonly expiresAt: Date
}

/** Reads it in one statement, shared with what others ask. Undefined when there is no such application. */
export const findRegistrationBasis = defineSharedTrip(
  async (db, owners: readonly OwnerNames[]): Promise<readonly (RegistrationBasis | undefined)[]> => {
    const { rows } = await db.executeQuery<BasisRow>(FIND_BASIS(owners.map((owner, position) => ({ ...owner, position }))))
    return rows.map(toBasis)
  },
)

const toBasis = (row: BasisRow): RegistrationBasis | undefined =>
  row.applicationId === null
    ? undefined
    : {
        applicationId: row.applicationId,
        isProtocol3Admitted: row.isProtocol3Admitted,
        signingKey: row.masterKeyPairId === null ? undefined : (row as MasterKeyPairRow),
        existing: row.activationId === null ? undefined : (row as LiveActivation),
      }

/** A CREATED activation. */
export interface NewActivationRow {
  readonly activationId: string
  readonly applicationId: string
  readonly userId: string
  readonly activationCodeHash: Uint8Array
  /** sealed; null when nobody is to be shown the code */
  readonly activationQrCode: Uint8Array | null
  readonly serverPublicKey: Uint8Array
  /** sealed */
  readonly serverPrivateKey: Uint8Array
  readonly maxFailedAttempts: number
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly commitPhase: CommitPhase
  readonly otpHash: Uint8Array | null
}

/** A CREATED activation with its audit row. */
export interface ActivationToInsert {
  readonly row: NewActivationRow
  readonly audit: AuditEvent
}

/** Inserts a CREATED activation with history and audit row. Throws a unique violation when the user has a live one, or the code exists. */
export async function insertActivation(db: Db, activation: ActivationToInsert): Promise<void> {
  await db.executeQuery(INSERT([toNewRow(activation)]))
}

const toNewRow = ({ row, audit: { eventType, eventData } }: ActivationToInsert): NewRow => ({ ...row, eventType, eventData })

type BasisRow =
  | { readonly applicationId: null }
  | (Pick<RegistrationBasis, 'applicationId' | 'isProtocol3Admitted'> &
      ({ readonly activationId: null } | LiveActivation) &
      ({ readonly masterKeyPairId: null } | MasterKeyPairRow))

const FIND_BASIS = OWNERS.define(
  (asked) => sql`
  select p.application_id as "applicationId", p.is_protocol_3_admitted as "isProtocol3Admitted",
    m.master_key_pair_id as "masterKeyPairId", m.algorithm, m.public_key as "publicKey", m.private_key as "privateKey",
    a.activation_id as "activationId", a.state, a.row_version as "rowVersion", a.expires_at as "expiresAt"
  ${fromOwners(asked)}
  left join master_key_pair m on m.application_id = p.application_id
    and m.algorithm = case when p.is_protocol_3_admitted then 'EC_P256' else 'EC_P384' end
  order by i.position`,
)

type NewRow = NewActivationRow & Pick<AuditEvent, 'eventType' | 'eventData'>

const NEW_COLUMNS = {
  activationId: 'text',
  applicationId: 'text',
  userId: 'text',
  activationCodeHash: 'bytea',
  activationQrCode: 'bytea',
  serverPublicKey: 'bytea',
  serverPrivateKey: 'bytea',
  maxFailedAttempts: 'int',
  createdAt: 'timestamptz',
  expiresAt: 'timestamptz',
  commitPhase: 'text',
  otpHash: 'bytea',
  eventType: 'text',
  eventData: 'text',
} as const

const INSERT = defineGivenRows<NewRow>(NEW_COLUMNS).define(
  (given) => sql`
  with created as (
    insert into activation (activation_id, application_id, user_id, state, activation_code_hash, activation_qr_code, server_public_key,
      server_private_key, max_failed_attempts, created_at, expires_at, commit_phase, otp_hash)
    select "activationId", "applicationId", "userId", 'CREATED', "activationCodeHash", "activationQrCode", "serverPublicKey",
      "serverPrivateKey", "maxFailedAttempts", "createdAt", "expiresAt", "commitPhase", "otpHash" from ${given} as i
    returning activation_id, application_id, user_id, state, created_at
  ), history as (
    ${insertHistoryFrom(sql`created`, { to: sql`state`, at: sql`created_at` })}
  )
  ${insertAuditFrom(sql`created join ${given} as i on i."activationId" = activation_id`, {
    applicationId: sql`application_id`,
    userId: sql`user_id`,
    eventType: sql`i."eventType"`,
    eventData: sql`i."eventData"`,
    occurredAt: sql`created_at`,
  })}
  returning activation_id`,
)
