// Reads, for phones with a token, the token and the data to show in the same statement. Phones poll this every few seconds; concurrent requests
// share a statement.
import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../database/database.ts'
import { defineAskedRows } from '../database/bulk-statement.ts'
import { amongPending } from '../database/index-conditions.ts'
import { isForPhone, OPERATION_COLUMNS, type OperationColumns, type OperationRow, toOperation } from '../operation/operations.ts'
import { createSharedTrip } from '../database/batched-statement.ts'
import { joinToken, type TokenColumns, type TokenRow, toToken } from './tokens.ts'

/** The names in a request, and the time at which activation and operations are seen. */
export interface TokenNames {
  readonly tokenId: string
  readonly at: Date
}

export interface TokenRead<Found> {
  readonly token: TokenRow | undefined
  /** Data of the token's user; empty without a token. */
  readonly found: Found
}

export interface TokenReads {
  /** Lists the operations that wait for the user's approval, newest first. */
  readonly pendingOperations: (names: TokenNames) => Promise<TokenRead<readonly OperationRow[]>>
  /** Finds an operation of the application, also one of another user. */
  readonly operation: (names: TokenNames & { readonly operationId: string }) => Promise<TokenRead<OperationRow | undefined>>
  /** Counts the unread ones of the newest 10,000 messages of the inbox. */
  readonly unreadMessages: (names: TokenNames) => Promise<TokenRead<number>>
}

/** Makes the reads of a process; concurrent calls share statements. */
export function createTokenReads(db: Db): TokenReads {
  return {
    pendingOperations: createSharedTrip(async (names) =>
      toReads(await execute<WithOperation>(db, FIND_PENDING(names)), names.length, (rows) => rows.flatMap(operationsOf)),
    ),
    operation: createSharedTrip(async (names) =>
      toReads(await execute<WithOperation>(db, FIND_ONE(names)), names.length, (rows) => rows.flatMap(operationsOf)[0]),
    ),
    unreadMessages: createSharedTrip(async (names) =>
      toReads(await execute<{ unread: string }>(db, COUNT_UNREAD(names)), names.length, ([row]) => Number(row?.unread)),
    ),
  }
}

type Row<Columns> = TokenColumns & Columns & { readonly position: number }
type WithOperation = { readonly [K in keyof OperationColumns]: OperationColumns[K] | null }

const execute = async <Columns>(db: Db, query: Parameters<Db['executeQuery']>[0]): Promise<readonly Row<Columns>[]> =>
  (await db.executeQuery<Row<Columns>>(query)).rows

/** Makes one answer for each request, from the rows with the position of the request. */
function toReads<Columns, Found>(
  rows: readonly Row<Columns>[],
  asked: number,
  toFound: (rows: readonly Row<Columns>[]) => Found,
): readonly TokenRead<Found>[] {
  const own: Row<Columns>[][] = Array.from({ length: asked }, () => [])
  for (const row of rows) own[row.position]?.push(row)
  return own.map((each) => ({ token: each[0] && toToken(each[0]), found: toFound(each) }))
}

const operationsOf = (row: WithOperation): OperationRow[] =>
  row.operationId === null ? [] : [toOperation(row as OperationColumns)]

const OPERATIONS_MAX = 100
const COUNTED_MAX = 10_000

const COLUMNS = { tokenId: 'text', at: 'timestamptz' } as const

const fromAsked = (asked: RawBuilder<unknown>) => sql`from ${asked} as i
  ${joinToken(sql`i."tokenId"`, sql`i.at`)}`

const FIND_PENDING = defineAskedRows<TokenNames>(COLUMNS).define(
  (asked) => sql`
  select i.position, k.*, ${OPERATION_COLUMNS}
  ${fromAsked(asked)}
  left join lateral (
    select * from operation w
    where w.application_id = k."tokenApplicationId" and w.user_id = k."tokenUserId" and ${amongPending('w')} and w.expires_at > i.at
      and ${isForPhone('w', sql`k."tokenActivationId"`)}
    order by w.created_at desc, w.operation_id limit ${sql.lit(OPERATIONS_MAX)}
  ) as o on true
  order by i.position, o.created_at desc, o.operation_id`,
)

const FIND_ONE = defineAskedRows<TokenNames & { readonly operationId: string }>({ ...COLUMNS, operationId: 'text' }).define(
  (asked) => sql`
  select i.position, k.*, ${OPERATION_COLUMNS}
  ${fromAsked(asked)}
  left join operation o on o.operation_id = i."operationId" and o.application_id = k."tokenApplicationId"
  order by i.position`,
)

const COUNT_UNREAD = defineAskedRows<TokenNames>(COLUMNS).define(
  (asked) => sql`
  select i.position, k.*, (
    select count(*) filter (where not m.is_read) from (
      select is_read from inbox_message where application_id = k."tokenApplicationId" and user_id = k."tokenUserId"
      order by created_at desc limit ${sql.lit(COUNTED_MAX)}
    ) m
  ) as unread
  ${fromAsked(asked)}
  order by i.position`,
)
