// Reads and stores keys of an activation: for the key exchange, and for later changes (v3 §8.3, v4 §9.6, §9.12, §9.13).
import { type RawBuilder, sql } from 'kysely'
import { AUDIT_GIVEN, AUDIT_OF_GIVEN, type AuditEvent, insertAuditFrom, toAuditGiven } from '../audit/audit.ts'
import type { Db, Tx } from '../database/database.ts'
import { defineAskedRows, defineGivenRows } from '../database/bulk-statement.ts'
import type { CommitPhase } from '../database/schema.ts'
import { createSharedTrip, defineSharedWrite } from '../database/batched-statement.ts'
import { insertTwoValuesFrom, insertValuesFrom, toValueColumns, type UniqueValue, VALUE_COLUMNS } from './unique-values.ts'
import {
  DEVICE_COLUMNS,
  EXCHANGED_COLUMNS,
  givenColumns,
  PARENT_COLUMNS,
  type Read,
  selectColumns,
  setColumns,
  type Written,
} from './columns.ts'
import { type ReadActivationRow, selectActivation } from './find.ts'
import { forgetRest } from './change.ts'
import { insertHistoryFrom } from './history.ts'

/** An activation before its key exchange. */
export interface WaitingActivationRow extends ReadActivationRow, Read<typeof PARENT_COLUMNS> {
  readonly serverPublicKey: Buffer
  readonly codeHash: Buffer
  readonly commitPhase: CommitPhase
  readonly otpHash: Buffer | null
}

/** The names in a request, and the time at which the activation is seen. */
interface ExchangeNames {
  readonly applicationId: string
  /** 32 bytes; null when the request has no code. */
  readonly codeHash: Uint8Array | null
  /** The values that the envelopes use up, 32 bytes each. */
  readonly value: Uint8Array | null
  readonly secondValue: Uint8Array | null
  readonly at: Date
}

/** The data on which a key exchange is decided. */
export interface ExchangeBasis {
  /** True when one of the values was used before. */
  readonly isUsed: boolean
  /** The CREATED activation with this code in the application. */
  readonly activation: WaitingActivationRow | undefined
  /** Sealed claims that the bank stored about the user; null without any. */
  readonly userClaims: Buffer | null
}

export type ExchangeBasisReader = (names: ExchangeNames) => Promise<ExchangeBasis>

/** Makes the reader of a process; its concurrent calls share a statement. */
export const createExchangeBasisReader = (db: Db): ExchangeBasisReader =>
  createSharedTrip(async (names) => {
    const { rows } = await db.executeQuery<BasisColumns>(FIND_BASIS(names))
    return rows.map(toBasis)
  })

type BasisColumns = Pick<ExchangeBasis, 'isUsed' | 'userClaims'> & {
  readonly [K in keyof WaitingActivationRow]: WaitingActivationRow[K] | null
}

const toBasis = (row: BasisColumns): ExchangeBasis => ({
  isUsed: row.isUsed,
  activation: row.activationId === null ? undefined : (row as WaitingActivationRow),
  userClaims: row.userClaims,
})

/** The phone's description of itself. */
export interface DeviceDescription extends Written<typeof DEVICE_COLUMNS> {}

/** The columns that a key exchange sets. */
interface KeyExchange extends Written<typeof EXCHANGED_COLUMNS>, DeviceDescription {
  readonly activationId: string
  readonly rowVersion: number
  readonly to: 'PENDING_COMMIT' | 'ACTIVE'
  readonly at: Date
}

/** Stores the phone's confirmation. False when the activation does not wait for one. */
export async function confirmActivation(tx: Tx, activationId: string, isBiometryEnabled: boolean): Promise<boolean> {
  const { rows } = await sql`
    update activation set is_confirmation_pending = false, is_biometry_enabled = ${isBiometryEnabled}, row_version = row_version + 1
    where activation_id = ${activationId} and is_confirmation_pending and state in ('PENDING_COMMIT', 'ACTIVE')
    returning activation_id`.execute(tx)
  return rows.length === 1
}

/** A change of the factor keys of an activation. */
interface FactorKeyChange {
  readonly activationId: string
  /** Sealed; the stored secret from which the new one was made. */
  readonly from: Uint8Array
  /** Sealed. */
  readonly to: Uint8Array
  /** Undefined keeps the stored value. */
  readonly isBiometryEnabled: boolean | undefined
  /** The value that the request uses up. */
  readonly use: UniqueValue | undefined
}

/**
 * Stores changed factor keys of a bound activation. False when the stored secret is no longer `from`, and then nothing is used up; every write of
 * the secret seals it anew, so the comparison detects it. Throws a unique violation when the value was used before.
 */
export async function storeFactorKeys(
  db: Db,
  { activationId, from, to, isBiometryEnabled, use }: FactorKeyChange,
): Promise<boolean> {
  const { rows } = await sql`
    with changed as (
      update activation set master_secret = ${to}, is_biometry_enabled = coalesce(${isBiometryEnabled ?? null}, is_biometry_enabled),
        row_version = row_version + 1
      where activation_id = ${activationId} and master_secret = ${from} and state in ('ACTIVE', 'BLOCKED')
      returning ${use?.valueHash ?? null}::bytea as value, ${use?.expiresAt ?? null}::timestamptz as "valueExpiresAt"
    ), used as (
      ${insertValuesFrom(sql`changed`)}
    )
    select value from changed`.execute(db)
  return rows.length === 1
}

/** Reads the current sealed secret of a bound activation. */
export async function findFactorKeys(db: Db, activationId: string): Promise<Buffer | undefined> {
  const { rows } = await sql<{ masterSecret: Buffer | null }>`
    select master_secret as "masterSecret" from activation
    where activation_id = ${activationId} and state in ('ACTIVE', 'BLOCKED')`.execute(db)
  return rows[0]?.masterSecret ?? undefined
}

const FIND_BASIS = defineAskedRows<ExchangeNames>({
  applicationId: 'text',
  codeHash: 'bytea',
  value: 'bytea',
  secondValue: 'bytea',
  at: 'timestamptz',
}).define(
  (asked) => sql`
  select exists (select from unique_value u where u.value_hash in (i.value, i."secondValue")) as "isUsed", c.claims as "userClaims",
    ${selectActivation(sql`i.at`)}, a.server_public_key as "serverPublicKey", a.activation_code_hash as "codeHash", a.commit_phase as "commitPhase", a.otp_hash as "otpHash",
    ${selectColumns(PARENT_COLUMNS)}
  from ${asked} as i
  left join activation a on a.application_id = i."applicationId" and a.activation_code_hash = i."codeHash" and a.state = 'CREATED'
  left join user_claims c on c.application_id = a.application_id and c.user_id = a.user_id
  order by i.position`,
)

type GivenExchange = KeyExchange &
  ReturnType<typeof toAuditGiven> &
  ReturnType<typeof toValueColumns> & { readonly secondType: string | undefined; readonly secondData: string | undefined }

const EXCHANGE_GIVEN = {
  activationId: 'text',
  rowVersion: 'int',
  to: 'text',
  ...givenColumns(EXCHANGED_COLUMNS),
  ...givenColumns(DEVICE_COLUMNS),
  at: 'timestamptz',
  ...AUDIT_GIVEN,
  secondType: 'text',
  secondData: 'text',
  ...VALUE_COLUMNS,
} as const

interface ExchangeToStore {
  readonly exchange: KeyExchange
  readonly audits: readonly [AuditEvent, AuditEvent?]
  readonly values: readonly UniqueValue[]
}

const toGiven = ({ exchange, audits: [audit, second], values }: ExchangeToStore): GivenExchange => ({
  ...exchange,
  ...toAuditGiven(audit),
  secondType: second?.eventType,
  secondData: second?.eventData,
  ...toValueColumns(values),
})

/** The columns that the remaining parts of the statement read from `moved`. */
const MOVED = sql`a.activation_id, i."to", i.at, i."applicationId", i."userId", i."eventType", i."eventData", i."verifiedBy",
      i."secondType", i."secondData", i.value, i."valueExpiresAt", i."secondValue", i."secondValueExpiresAt"`

/**
 * Composes the statement that binds phones. `parent` is for phones whose code another activation asked for: `locked` locks that activation before
 * the update, and `ended` stores its change after the update. Values are inserted in the order of their bytes, as in every statement: two requests
 * with the same values would otherwise deadlock.
 */
const composeExchange = (
  exchanges: RawBuilder<unknown>,
  parent?: { readonly locked: RawBuilder<unknown>; readonly ended: RawBuilder<unknown> },
): RawBuilder<unknown> => sql`
  with ${parent ? sql`${parent.locked}, ` : sql``}moved as (
    update activation a set state = i."to", ${setColumns(EXCHANGED_COLUMNS)}, counter = 0,
      failed_attempts = 0, ${setColumns(DEVICE_COLUMNS)}, activation_qr_code = null, row_version = a.row_version + 1,
      otp_hash = case when i."to" = 'PENDING_COMMIT' then a.otp_hash end
    from ${exchanges} as i
    where a.activation_id = i."activationId" and a.row_version = i."rowVersion" and a.state = 'CREATED' and a.expires_at > i.at${
      parent
        ? sql` and exists (
        select from locked p join activation s on s.activation_id = p.activation_id and s.row_version = p.row_version
        where p.activation_id = i."parentId" and p.state = 'ACTIVE'
      )`
        : sql``
    }
    returning ${MOVED}${parent ? sql`, i."parentId", i."isParentReplaced", i."parentData"` : sql``}
  )${parent ? parent.ended : sql``}, history as (
    ${insertHistoryFrom(sql`moved`, { from: sql`'CREATED'`, to: sql`"to"`, at: sql`at` })}
  ), used as (
    ${insertTwoValuesFrom(sql`moved`)}
  )
  ${insertAuditFrom(
    sql`moved cross join lateral (values (1, "eventType", "eventData"), (2, "secondType", "secondData")) as e (position, type, data)
    where e.type is not null order by e.position`,
    { ...AUDIT_OF_GIVEN, eventType: sql`e.type`, eventData: sql`e.data` },
  )}
  returning activation_id`

/**
 * Moves an activation from CREATED to PENDING_COMMIT or ACTIVE with its keys. The statement, which concurrent calls share, also writes history, one
 * or two audit rows, and up to two values that the request uses up. False when the code was used, removed or expired meanwhile, or a wrong OTP was
 * counted; then nothing is used up. Throws a unique violation when a value was used meanwhile.
 */
export const storeKeyExchange = defineSharedWrite({
  statement: defineGivenRows<GivenExchange>(EXCHANGE_GIVEN).define((exchanges) => composeExchange(exchanges)),
  toRow: toGiven,
  idOf: ({ exchange }) => exchange.activationId,
  column: 'activation_id',
})

/** The activation that asked for the code of another one. */
interface ExchangeOfParent {
  readonly parentActivationId: string
  readonly isReplaced: boolean
  /** JSON for the audit row of the parent's removal. */
  readonly eventData: string
}

/**
 * Like storeKeyExchange, for an activation whose parent must be ACTIVE. False, with nothing stored, when the parent is not ACTIVE, or was changed
 * while the statement waited for its lock: rows that such a change added are invisible to this statement, so it could not delete them. A parent
 * that is replaced becomes REMOVED in the same statement, with its own history and audit row. The statement is never shared: two children of one
 * parent, of which one replaces it, would both find it ACTIVE.
 */
export async function storeKeyExchangeOfChild(
  db: Db,
  toStore: ExchangeToStore,
  { parentActivationId, isReplaced, eventData }: ExchangeOfParent,
): Promise<boolean> {
  const child = { ...toGiven(toStore), parentId: parentActivationId, isParentReplaced: isReplaced, parentData: eventData }
  const { rows } = await db.executeQuery(EXCHANGE_OF_CHILD([child]))
  return rows.length > 0
}

interface GivenChild extends GivenExchange {
  readonly parentId: string
  readonly isParentReplaced: boolean
  readonly parentData: string
}

// Parent and child are locked in the order of their ids, as in every statement that locks several activations.
const EXCHANGE_OF_CHILD = defineGivenRows<GivenChild>({
  ...EXCHANGE_GIVEN,
  parentId: 'text',
  isParentReplaced: 'boolean',
  parentData: 'text',
}).define((exchanges) =>
  composeExchange(exchanges, {
    locked: sql`locked as (
    select a.activation_id, a.state, a.row_version from activation a
    where a.activation_id in (select unnest(array[i."activationId", i."parentId"]) from ${exchanges} as i)
    order by a.activation_id for update
  )`,
    ended: sql`, ended as (
    update activation a set state = 'REMOVED', row_version = a.row_version + 1
    from moved where a.activation_id = moved."parentId" and moved."isParentReplaced"
    returning a.activation_id, a.application_id, a.user_id, moved."parentData", moved.at
  ), parent_history as (
    ${insertHistoryFrom(sql`(select "parentId" as activation_id, "isParentReplaced", at from moved) as parent`, {
      from: sql`'ACTIVE'`,
      to: sql`case when "isParentReplaced" then 'REMOVED' else 'ACTIVE' end`,
      reason: sql`case when "isParentReplaced" then 'MOVED' else 'SPAWNED' end`,
      at: sql`at`,
    })}
  )${forgetRest(sql`ended`)}, parent_audit as (
    ${insertAuditFrom(sql`ended`, {
      eventType: sql`'registration_removed'`,
      eventData: sql`"parentData"`,
      occurredAt: sql`at`,
    })}
  )`,
  }),
)
