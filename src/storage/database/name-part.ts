// Finds records by a part of their user id. No index supports that, and the trigrams of PostgreSQL are an extension that a bank may not have. So a
// search reads a bounded part of a list, and returns the place where the next search begins.
import { type RawBuilder, sql } from 'kysely'
import type { Db } from './database.ts'

/** The most records that one search reads: 30 ms of PostgreSQL, however large the application is. */
const LOOKED_AT_MAX = 50_000

/** A place in a list that is ordered by time of creation and id. */
export interface Place {
  readonly createdAt: Date
  readonly id: string
}

interface List {
  readonly table: 'activation' | 'operation'
  readonly id: 'activation_id' | 'operation_id'
  /** Conditions for the records that are searched, newest first. */
  readonly conditions: readonly RawBuilder<unknown>[]
}

/**
 * Returns at most `limit` ids of the newest records whose user id contains `part`, where A to Z equal a to z. `next` is the place where the next
 * search begins, undefined when all records were searched. `ids` may be empty while `next` is set.
 */
export async function findByNamePart(
  db: Db,
  { table, id, conditions }: List,
  part: string,
  limit: number,
  lookedAtMax = LOOKED_AT_MAX,
): Promise<{ readonly ids: readonly string[]; readonly next: Place | undefined }> {
  const order = sql`created_at desc, ${sql.ref(id)} desc`
  const { rows } = await sql<Place & { readonly isFound: boolean; readonly isEnd: boolean }>`
    select ${sql.ref(id)} as id, created_at as "createdAt", is_found as "isFound", place = ${lookedAtMax} as "isEnd"
    from (
      select ${sql.ref(id)}, created_at, row_number() over (order by ${order}) as place,
        coalesce(position(lower(${part}::text collate "C") in lower(user_id collate "C")) > 0, false) as is_found
      from (
        select ${sql.ref(id)}, created_at, user_id from ${sql.table(table)} where ${sql.join(conditions, sql` and `)}
        order by ${order} limit ${lookedAtMax}
      ) as looked_at
    ) as judged
    where is_found or place = ${lookedAtMax} order by ${order} limit ${limit + 1}`.execute(db)
  const found = rows.filter(({ isFound }) => isFound)
  const last = found.length > limit ? found[limit - 1] : rows.find(({ isEnd }) => isEnd)
  return {
    ids: found.slice(0, limit).map((row) => row.id),
    next: last && { createdAt: last.createdAt, id: last.id },
  }
}
