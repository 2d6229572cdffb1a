// Stores and finds operations, which a user is asked to approve, in the table operation. Statements that end one are in transitions.ts.
import { type RawBuilder, sql } from 'kysely'
import { isObjectOfTexts } from '../../lib/json.ts'
import { type AuditEvent, insertAuditFrom } from '../audit/audit.ts'
import { readJson, toList } from '../database/columns.ts'
import type { Db, Tx } from '../database/database.ts'
import { defineGivenRows } from '../database/bulk-statement.ts'
import { amongPending, beginsWith } from '../database/index-conditions.ts'
import { findByNamePart, type Place } from '../database/name-part.ts'
import type { OperationStatus } from '../database/schema.ts'
import { isActiveAt } from '../activation/seen-state.ts'

export interface OperationRow {
  readonly operationId: string
  readonly applicationId: string
  /** Null until a user claims the operation. */
  readonly userId: string | null
  readonly templateRevisionId: string
  readonly templateName: string
  readonly operationType: string
  readonly language: string
  readonly parameters: Readonly<Record<string, string>>
  readonly data: string
  readonly status: OperationStatus
  readonly statusReason: string | null
  readonly signatureTypes: readonly string[]
  readonly failureCount: number
  readonly maxFailureCount: number
  /** Letters. */
  readonly riskFlags: string
  readonly activationFlag: string | null
  /** The only activation that may see and decide the operation; null: every activation of its user. */
  readonly activationId: string | null
  /** Sealed. */
  readonly proximitySeed: Buffer | null
  readonly createdAt: Date
  readonly expiresAt: Date
}

/** A PENDING operation to create. */
export interface NewOperation extends Omit<OperationRow, 'applicationId' | 'status' | 'statusReason' | 'failureCount'> {
  /** Null for the default application. */
  readonly applicationId: string | null
  readonly externalId: string | null
}

/**
 * Inserts a PENDING operation and its audit row if its user has an ACTIVE registration in the application, and returns the id of the application;
 * undefined otherwise. When the operation names an activation, that activation must be ACTIVE; else the audit row names any of several. An
 * operation without a user needs an ACTIVE activation only if it names one. Its audit row then has the user of that activation. If it names none, the
 * audit row has no user and an empty activation.
 */
export async function insertOperation(
  db: Db,
  { parameters, signatureTypes, ...operation }: NewOperation,
  { eventType, eventData, verifiedBy }: Pick<AuditEvent, 'eventType' | 'eventData' | 'verifiedBy'>,
): Promise<string | undefined> {
  const texts = { parameters: JSON.stringify(parameters), signatureTypes: signatureTypes.join(',') }
  const statement = operation.userId === null ? INSERT_UNCLAIMED : INSERT
  const given = { ...operation, ...texts, eventType, eventData, verifiedBy }
  const { rows } = await db.executeQuery<{ applicationId: string }>(statement([given]))
  return rows[0]?.applicationId
}

/** Finds an operation of an application. */
export async function findOperation(db: Db, applicationId: string, operationId: string): Promise<OperationRow | undefined> {
  const row = await selectOperations(db)
    .where('operation_id', '=', operationId)
    .where('application_id', '=', applicationId)
    .executeTakeFirst()
  return row && toOperation(row)
}

/** Lists operations of an application by their ids, in no particular order. */
export async function listOperationsOfIds(
  db: Db,
  applicationId: string,
  operationIds: readonly string[],
): Promise<OperationRow[]> {
  const rows = await selectOperations(db)
    .where(sql<boolean>`operation_id = any(${operationIds}::text[])`)
    .where('application_id', '=', applicationId)
    .execute()
  return rows.map(toOperation)
}

/** An operation that an activation is about to decide. */
export interface LockedOperation extends OperationRow {
  /** Flags of the deciding activation; empty when there is no such activation. */
  readonly approverFlags: readonly string[]
}

/** Finds an operation and locks it until the end of the transaction, with the flags of the deciding activation. */
export async function lockOperation(
  tx: Tx,
  applicationId: string,
  operationId: string,
  approverId: string,
): Promise<LockedOperation | undefined> {
  const row = await selectOperations(tx)
    .select((query) => query.selectFrom('activation').select('flags').where('activation_id', '=', approverId).as('approverFlags'))
    .where('operation_id', '=', operationId)
    .where('application_id', '=', applicationId)
    .forUpdate()
    .executeTakeFirst()
  return row && toLocked(row)
}

/** A locked operation as the table has it. */
export type LockedColumns = OperationColumns & { readonly approverFlags: string | null }

/** Converts a locked row. */
export const toLocked = ({ approverFlags, ...row }: LockedColumns): LockedOperation => ({
  ...toOperation(row),
  approverFlags: toList(approverFlags ?? ''),
})

/** The phone that asks, and its user. */
interface OperationViewer {
  readonly applicationId: string
  readonly userId: string
  readonly activationId: string
}

/** Lists the operations of a user that this phone may see, newest first. */
export async function listUserOperations(
  db: Db,
  { applicationId, userId, activationId }: OperationViewer,
  limit: number,
): Promise<OperationRow[]> {
  const rows = await selectOperations(db)
    .where('application_id', '=', applicationId)
    .where('user_id', '=', userId)
    .where(isForPhone('operation', sql`${activationId}`))
    .orderBy('created_at', 'desc')
    .orderBy('operation_id')
    .limit(limit)
    .execute()
  return rows.map(toOperation)
}

export interface OperationSearch {
  readonly userId?: string | undefined
  /** The beginning of the ids of users who have or had an activation, where A to Z equal a to z. */
  readonly userIdPrefix?: string | undefined
  /** The stored status; use `pendingAt` to search for PENDING operations. */
  readonly status?: Exclude<OperationStatus, 'PENDING'> | undefined
  /** Only operations that are PENDING and not expired at this time. */
  readonly pendingAt?: Date | undefined
  /** Only operations that come after this one in the order. */
  readonly after?: { readonly createdAt: Date; readonly operationId: string } | undefined
  readonly limit: number
  /** The number of operations to skip; default 0. */
  readonly offset?: number
}

/** Searches operations of an application, newest first. */
export async function searchOperations(db: Db, applicationId: string, search: OperationSearch): Promise<OperationRow[]> {
  const { limit, offset = 0 } = search
  const query = selectOperations(db).where(sql<boolean>`${sql.join(conditionsOf(applicationId, search), sql` and `)}`)
  const rows = await (offset > 0 ? query.offset(offset) : query)
    .orderBy('created_at', 'desc')
    .orderBy('operation_id', 'desc')
    .limit(limit)
    .execute()
  return rows.map(toOperation)
}

/** Searches a bounded part of the list for user ids that contain `part`, where A to Z equal a to z; `next` is where the next search begins. */
export async function searchOperationsWith(
  db: Db,
  applicationId: string,
  search: OperationSearch,
  part: string,
): Promise<{ readonly rows: OperationRow[]; readonly next: Place | undefined }> {
  const list = { table: 'operation', id: 'operation_id', conditions: conditionsOf(applicationId, search) } as const
  const { ids, next } = await findByNamePart(db, list, part, search.limit)
  if (ids.length === 0) return { rows: [], next }
  // One text for any number of ids, because each text is prepared on each connection and stays there.
  const query = selectOperations(db).where(sql<boolean>`operation_id = any(${ids}::text[])`)
  const rows = await query.orderBy('created_at', 'desc').orderBy('operation_id', 'desc').execute()
  return { rows: rows.map(toOperation), next }
}

function conditionsOf(
  applicationId: string,
  { userId, userIdPrefix, status, pendingAt, after }: OperationSearch,
): RawBuilder<boolean>[] {
  return [
    sql<boolean>`application_id = ${applicationId}`,
    ...(userId === undefined ? [] : [sql<boolean>`user_id = ${userId}`]),
    ...(userIdPrefix === undefined
      ? []
      : [
          sql<boolean>`exists (select from activation a where a.application_id = operation.application_id
            and a.user_id = operation.user_id and ${beginsWith('a', userIdPrefix)})`,
        ]),
    // A literal and not a parameter: PostgreSQL chooses a partial index by the literal.
    ...(status === undefined ? [] : [sql<boolean>`status = ${sql.lit(status)}`]),
    ...(pendingAt === undefined ? [] : [amongPending('operation'), sql<boolean>`expires_at > ${pendingAt}`]),
    ...(after === undefined ? [] : [sql<boolean>`(created_at, operation_id) < (${after.createdAt}, ${after.operationId})`]),
  ]
}

/** Data of an operation that no phone gets. */
interface OperationNotes {
  readonly externalId: string | null
  readonly finalizedAt: Date | null
}

/** Returns the notes of these operations, by operation id. */
export async function listOperationNotes(db: Db, operationIds: readonly string[]): Promise<ReadonlyMap<string, OperationNotes>> {
  const { rows } = await sql<OperationNotes & { readonly operationId: string }>`
    select operation_id as "operationId", external_id as "externalId", finalized_at as "finalizedAt" from operation
    where operation_id = any(${[...operationIds]}::text[])`.execute(db)
  return new Map(rows.map(({ operationId, ...notes }) => [operationId, notes]))
}

/** Stores a nonce of an offline approval, and deletes the oldest ones of the operation, so that `keep` are left. */
export async function insertOperationNonce(db: Db, operationId: string, nonce: string, at: Date, keep: number): Promise<void> {
  await sql`
    with dropped as (
      delete from operation_nonce where operation_id = ${operationId} and nonce in (
        select nonce from operation_nonce where operation_id = ${operationId} order by created_at desc, nonce offset ${keep - 1}
      )
    )
    insert into operation_nonce (operation_id, nonce, created_at) values (${operationId}, ${nonce}, ${at})`.execute(db)
}

/** True when the nonce is one of the newest `keep` of the operation. Insertions at one moment do not see each other, and leave more rows than that. */
export async function hasOperationNonce(db: Db, operationId: string, nonce: string, keep: number): Promise<boolean> {
  const { rows } = await sql`
    select from (
      select nonce from operation_nonce where operation_id = ${operationId} order by created_at desc, nonce limit ${keep}
    ) newest where nonce = ${nonce}`.execute(db)
  return rows.length === 1
}

/** Deletes up to `limit` nonces of operations that are not PENDING any more. */
export async function deleteUselessNonces(db: Db, _at: Date, limit: number): Promise<number> {
  const { rows } = await sql`
    delete from operation_nonce where (operation_id, nonce) in (
      select n.operation_id, n.nonce from operation_nonce n join operation o on o.operation_id = n.operation_id
      where o.status <> 'PENDING' limit ${limit} for update of n skip locked
    ) returning nonce`.execute(db)
  return rows.length
}

/** The row that OPERATION_COLUMNS selects. */
export type OperationColumns = Omit<OperationRow, keyof StoredOperation> & StoredOperation

/** Members that the table holds as text. */
interface StoredOperation {
  readonly parameters: string
  readonly signatureTypes: string
}

/** Converts a row. It must not throw: many requests share a read, and each of them would fail. */
export const toOperation = <Row extends StoredOperation>(row: Row) => ({
  ...row,
  parameters: readParameters(row.parameters),
  signatureTypes: toList(row.signatureTypes),
})

/** Parses a column of parameters. Returns an empty record when the stored JSON was altered and is not an object of texts. */
export function readParameters(text: string): Readonly<Record<string, string>> {
  const value = readJson(text)
  return isObjectOfTexts(value) ? value : {}
}

const operationColumns = [
  'operation_id as operationId',
  'application_id as applicationId',
  'user_id as userId',
  'template_revision_id as templateRevisionId',
  'template_name as templateName',
  'operation_type as operationType',
  'language',
  'parameters',
  'data',
  'status',
  'status_reason as statusReason',
  'signature_types as signatureTypes',
  'failure_count as failureCount',
  'max_failure_count as maxFailureCount',
  'risk_flags as riskFlags',
  'activation_flag as activationFlag',
  'activation_id as activationId',
  'proximity_seed as proximitySeed',
  'created_at as createdAt',
  'expires_at as expiresAt',
] as const

const selectOperations = (db: Db) => db.selectFrom('operation').select(operationColumns)

/** True when an operation, in the table `of`, is for every phone of its user or for the phone `activationId`. */
export const isForPhone = (of: string, activationId: RawBuilder<unknown>): RawBuilder<boolean> =>
  sql<boolean>`(${sql.ref(`${of}.activation_id`)} is null or ${sql.ref(`${of}.activation_id`)} = ${activationId})`

/** Selects the columns of an operation `o`, for statements of constant text. */
export const OPERATION_COLUMNS = sql.join(
  operationColumns.map((column) => {
    const [name, member = name] = column.split(' as ')
    return sql`${sql.ref(`o.${name}`)} as ${sql.ref(`${member}`)}`
  }),
)

const NEW = defineGivenRows<
  Omit<NewOperation, 'parameters' | 'signatureTypes'> &
    Pick<AuditEvent, 'eventType' | 'eventData' | 'verifiedBy'> & { readonly parameters: string; readonly signatureTypes: string }
>({
  operationId: 'text',
  applicationId: 'text',
  userId: 'text',
  externalId: 'text',
  templateRevisionId: 'text',
  templateName: 'text',
  operationType: 'text',
  language: 'text',
  parameters: 'text',
  data: 'text',
  signatureTypes: 'text',
  maxFailureCount: 'int',
  riskFlags: 'text',
  activationFlag: 'text',
  activationId: 'text',
  proximitySeed: 'bytea',
  createdAt: 'timestamptz',
  expiresAt: 'timestamptz',
  eventType: 'text',
  eventData: 'text',
  verifiedBy: 'text',
})

const insertFrom = (owned: RawBuilder<unknown>) => sql`
    insert into operation (operation_id, application_id, user_id, external_id, template_revision_id, template_name, operation_type,
      language, parameters, data, status, signature_types, max_failure_count, risk_flags, activation_flag, activation_id, proximity_seed,
      created_at, expires_at)
    select "operationId", application_id, "userId", "externalId", "templateRevisionId", "templateName", "operationType",
      language, parameters, data, 'PENDING', "signatureTypes", "maxFailureCount", "riskFlags", "activationFlag", "activationId", "proximitySeed",
      "createdAt", "expiresAt"
    from ${owned}`

const APPLICATION = sql`coalesce(i."applicationId", (select application_id from application where is_default))`

/** The columns of the audit row of an operation that is created. */
const CREATED = {
  eventType: sql`"eventType"`,
  eventData: sql`"eventData"`,
  occurredAt: sql`"createdAt"`,
  verifiedBy: sql`"verifiedBy"`,
}

// Of a user's several phones, the audit row names any one. An `order by` could make PostgreSQL read all of them.
const INSERT = NEW.define(
  (given) => sql`
  with owned as (
    select i.*, k.activation_id, k.application_id from ${given} as i
    join lateral (
      select a.activation_id, a.application_id from activation a
      where a.application_id = ${APPLICATION} and a.user_id = i."userId" and ${isActiveAt(sql`i."createdAt"`)}
        and (i."activationId" is null or a.activation_id = i."activationId")
      limit 1
    ) as k on true
  ), created as (${insertFrom(sql`owned`)}
  )
  ${insertAuditFrom(sql`owned`, {
    userId: sql`"userId"`,
    ...CREATED,
  })}
  returning application_id as "applicationId"`,
)

// The named phone is locked until the end of the transaction, because its user may be erased at the same time.
const INSERT_UNCLAIMED = NEW.define(
  (given) => sql`
  with owned as (
    select i.*, p.application_id, k.user_id from ${given} as i join application p on p.application_id = ${APPLICATION}
    left join lateral (
      select a.user_id from activation a
      where a.activation_id = i."activationId" and a.application_id = p.application_id and ${isActiveAt(sql`i."createdAt"`)}
      for key share of a
    ) as k on true
    where i."activationId" is null or k.user_id is not null
  ), created as (${insertFrom(sql`owned`)}
  )
  ${insertAuditFrom(sql`owned`, {
    activationId: sql`coalesce("activationId", '')`,
    ...CREATED,
  })}
  returning application_id as "applicationId"`,
)
