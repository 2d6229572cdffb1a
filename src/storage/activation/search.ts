// Searches activations for administrators, and reads their details (cloud §10).
import { type RawBuilder, sql } from 'kysely'
import { toList } from '../database/columns.ts'
import type { Db } from '../database/database.ts'
import { amongEnded, amongWaiting, beginsWith } from '../database/index-conditions.ts'
import { findByNamePart, type Place } from '../database/name-part.ts'
import type { ActivationState } from '../database/schema.ts'
import { DETAIL_COLUMNS, LISTED_COLUMNS, type Read, selectColumns } from './columns.ts'
import { blockExpiresAt, effectiveStateAt } from './seen-state.ts'

/** True when the user has or had an activation. */
export async function hasActivation(db: Db, applicationId: string, userId: string): Promise<boolean> {
  const { rows } = await sql`
    select from activation where application_id = ${applicationId} and user_id = ${userId} limit 1`.execute(db)
  return rows.length > 0
}

/** An activation in a list. Expired CREATED and PENDING_COMMIT activations are shown as REMOVED, and an ended block as ACTIVE. */
export interface ListedRegistrationRow extends Read<typeof LISTED_COLUMNS> {
  readonly state: ActivationState
}

interface RegistrationSearch {
  readonly applicationId: string
  readonly userId: string | null
  /** The beginning of user ids, where A to Z equal a to z. */
  readonly userIdPrefix: string | null
  readonly state: ActivationState | null
  readonly protocolVersion: number | null
  readonly flag?: string | null
  readonly usedBefore?: Date | null
  /** The last activation of the previous page. */
  readonly after: { readonly createdAt: Date; readonly activationId: string } | null
  readonly at: Date
  readonly limit: number
}

/** Lists activations of an application in any state, newest first. */
export async function listRegistrations(db: Db, search: RegistrationSearch): Promise<ListedRegistrationRow[]> {
  return selectWhere<ListedRegistrationRow>(db, selectListed(search.at), conditionsOf(search), search.limit)
}

/**
 * Lists activations whose user id contains `part`, where A to Z equal a to z. It searches a bounded part of the list; `next` is where the next
 * search begins.
 */
export async function listRegistrationsWith(
  db: Db,
  search: RegistrationSearch,
  part: string,
): Promise<{ readonly rows: ListedRegistrationRow[]; readonly next: Place | undefined }> {
  const list = { table: 'activation', id: 'activation_id', conditions: conditionsOf(search) } as const
  const { ids, next } = await findByNamePart(db, list, part, search.limit)
  const isFound = sql`activation_id = any(${[...ids]}::text[])`
  return { rows: ids.length === 0 ? [] : await selectWhere(db, selectListed(search.at), [isFound], search.limit), next }
}

/** Lists activations of an application with all columns but keys, newest first. */
export async function searchRegistrationDetails(db: Db, search: RegistrationSearch): Promise<RegistrationDetailRow[]> {
  const rows = await selectWhere<DetailColumns>(db, selectDetail(search.at), conditionsOf(search), search.limit)
  return rows.map(toDetail)
}

function conditionsOf(search: RegistrationSearch): RawBuilder<unknown>[] {
  const state = effectiveStateAt(search.at)
  const { flag = null, usedBefore = null } = search
  return [
    sql`application_id = ${search.applicationId}`,
    ...(search.userId === null ? [] : [sql`user_id = ${search.userId}`]),
    ...(search.userIdPrefix === null ? [] : [beginsWith('activation', search.userIdPrefix)]),
    ...(search.state === null ? [] : [sql`${state} = ${search.state} and ${STORED_AS[search.state]}`]),
    ...(search.protocolVersion === null ? [] : [sql`protocol_version = ${search.protocolVersion}`]),
    ...(flag === null ? [] : [hasFlag(flag)]),
    ...(usedBefore === null ? [] : [wasUsedBefore(usedBefore)]),
    ...(search.after === null
      ? []
      : [sql`(created_at, activation_id) < (${search.after.createdAt}::timestamptz, ${search.after.activationId}::text)`]),
  ]
}

async function selectWhere<Row>(
  db: Db,
  columns: RawBuilder<unknown>,
  conditions: readonly RawBuilder<unknown>[],
  limit: number,
): Promise<Row[]> {
  const { rows } = await sql<Row>`
    select ${columns}
    from activation where ${sql.join(conditions, sql` and `)}
    order by created_at desc, activation_id desc limit ${limit}`.execute(db)
  return rows
}

const selectListed = (at: Date): RawBuilder<unknown> =>
  sql`${selectColumns(LISTED_COLUMNS, at, 'activation')}, ${effectiveStateAt(at)} as state`

const hasFlag = (flag: string): RawBuilder<boolean> => sql`${flag}::text = any(string_to_array(flags, ','))`
/** An activation that was never used counts from its creation. */
const wasUsedBefore = (time: Date): RawBuilder<boolean> => sql`coalesce(last_used_at, created_at) < ${time}`

/** All columns of an activation but its keys. */
export interface RegistrationDetailRow extends ListedRegistrationRow, Omit<Read<typeof DETAIL_COLUMNS>, 'flags'> {
  readonly flags: readonly string[]
  /** The end of a temporary block that is not over. */
  readonly blockExpiresAt: Date | null
  readonly isUpgradePending: boolean
  readonly hasOtp: boolean
}

/** Reads one activation of an application. */
export async function findRegistrationDetail(
  db: Db,
  applicationId: string,
  activationId: string,
  at: Date,
): Promise<RegistrationDetailRow | undefined> {
  const { rows } = await sql<DetailColumns>`
    select ${selectDetail(at)}
    from activation where application_id = ${applicationId} and activation_id = ${activationId}`.execute(db)
  const [row] = rows
  return row && toDetail(row)
}

/** Selects registrations of several users. */
interface UsersSearch {
  readonly applicationId: string
  readonly userIds: readonly string[]
  /** The states at the time `at`; an empty list: any state. */
  readonly states: readonly ActivationState[]
  /** An activation must have all of these flags. */
  readonly flags: readonly string[]
  /** An activation that was never used counts from its creation. */
  readonly usedBefore: Date | null
  readonly usedAfter: Date | null
  readonly at: Date
  readonly limit: number
  readonly offset: number
}

/** Lists the registrations of users with all columns but keys, newest first. */
export async function listRegistrationDetails(db: Db, search: UsersSearch): Promise<RegistrationDetailRow[]> {
  const { applicationId, userIds, states, flags, usedBefore, usedAfter, at, limit, offset } = search
  const conditions = [
    sql`application_id = ${applicationId}`,
    sql`user_id = any(${[...userIds]}::text[])`,
    ...(states.length === 0 ? [] : [sql`${effectiveStateAt(at)} = any(${[...states]}::text[])`]),
    ...flags.map(hasFlag),
    ...(usedBefore === null ? [] : [wasUsedBefore(usedBefore)]),
    ...(usedAfter === null ? [] : [sql`coalesce(last_used_at, created_at) > ${usedAfter}`]),
  ]
  const { rows } = await sql<DetailColumns>`
    select ${selectDetail(at)}
    from activation where ${sql.join(conditions, sql` and `)}
    order by created_at desc, activation_id desc limit ${limit} offset ${offset}`.execute(db)
  return rows.map(toDetail)
}

type DetailColumns = Omit<RegistrationDetailRow, 'flags'> & { readonly flags: string }

const toDetail = (row: DetailColumns): RegistrationDetailRow => ({ ...row, flags: toList(row.flags) })

const selectDetail = (
  at: Date,
): RawBuilder<unknown> => sql`${selectListed(at)}, ${selectColumns(DETAIL_COLUMNS, at, 'activation')}, ${blockExpiresAt(at)} as "blockExpiresAt",
      exists (select from activation_upgrade u where u.activation_id = activation.activation_id) as "isUpgradePending",
      otp_hash is not null as "hasOtp"`

const IS_WAITING = amongWaiting('activation')
const HAS_ENDED = amongEnded('activation')

/** Conditions on the stored state for each seen state, so that PostgreSQL can use the indexes of ended and of waiting rows. */
const STORED_AS: Record<ActivationState, RawBuilder<boolean>> = {
  CREATED: sql`(state = 'CREATED' and ${IS_WAITING})`,
  PENDING_COMMIT: sql`(state = 'PENDING_COMMIT' and ${IS_WAITING})`,
  ACTIVE: sql`state in ('ACTIVE', 'BLOCKED')`,
  BLOCKED: sql`(state = 'BLOCKED' and ${HAS_ENDED})`,
  REMOVED: sql`(state = 'REMOVED' and ${HAS_ENDED} or ${IS_WAITING})`,
}
