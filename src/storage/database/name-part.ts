// Finds records by a part of the name of their user. No index has that, and the trigrams of PostgreSQL are an extension that a bank may not
// have, so a search looks at a bounded stretch of a list and says where the next one begins.
import { type RawBuilder, sql } from 'kysely'
import type { Db } from './database.ts'

/** How many records one search looks at: 30 ms of PostgreSQL, however large the application is. */
const LOOKED_AT_MAX = 50_000

/** A place in a list in the order of time of creation and id. */
export interface Place {
  readonly createdAt: Date
  readonly id: string
}

interface List {
  readonly table: 'activation' | 'operation'
  readonly id: 'activation_id' | 'operation_id'
  /** Which of its records are looked at, beginning with the newest. */
  readonly conditions: readonly RawBuilder<unknown>[]
}

/**
 * Ids of the newest records whose user id holds `part`, whatever the capitals of A to Z, `limit` at most. `next`: where to go on; undefined once
 * all of them were looked at. It may be there without an id.
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
