// Where a list goes on that is in the order of time of creation and id: the last row that was shown.
import { Type } from '@sinclair/typebox'

// The time stays within what both databases and JavaScript can say.
const CURSOR = /^(\d{1,14})_([0-9a-f-]{36})$/

/** In a query: the `nextCursor` of the page before. */
export const Cursor = Type.Optional(
  Type.String({
    pattern: CURSOR.source,
    description: 'must be the nextCursor of an answer',
    examples: ['1767225600000_3f2504e0-4f89-41d3-9a0c-0305e82c3301'],
  }),
)

/** In an answer: leads to the next page; absent on the last one. */
export const NextCursor = Type.Optional(Type.String())

export interface Place {
  readonly createdAt: Date
  readonly id: string
}

/** Reads a text that has the form of a cursor. */
export function parseCursor(cursor: string): Place {
  const [, time = '', id = ''] = CURSOR.exec(cursor) ?? []
  return { createdAt: new Date(Number(time)), id }
}

/** One page of rows of which one more than `limit` was asked for, with the cursor of the next when there is one. */
export function cutPage<Row>(rows: readonly Row[], limit: number, placeOf: (row: Row) => Place) {
  const page = rows.slice(0, limit)
  const last = rows.length > limit ? page.at(-1) : undefined
  const place = last && placeOf(last)
  return { page, next: place ? { nextCursor: `${place.createdAt.getTime()}_${place.id}` } : {} }
}
