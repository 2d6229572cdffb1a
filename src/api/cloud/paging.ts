// Lists in pages: how many rows a page has, and where the next one begins.
import { Type } from '@sinclair/typebox'

/** In a query: how many items a page has at the most; `usual` where the query does not say. */
export const PageLimit = (max: number, usual: number) =>
  Type.Integer({ minimum: 1, maximum: max, default: usual, description: 'how many there are at the most' })

/**
 * One page of rows of which one more than `limit` was asked for. `last` is the last row of the page when there is another page: the next
 * one begins behind it.
 */
export function cutPage<Row>(
  rows: readonly Row[],
  limit: number,
): { readonly page: readonly Row[]; readonly last: Row | undefined } {
  const page = rows.slice(0, limit)
  return { page, last: rows.length > limit ? page.at(-1) : undefined }
}

/** Where the next page begins, as a member of an answer; none after the last page. */
export const nextCursorAt = (next: { readonly createdAt: Date; readonly id: string } | undefined): { nextCursor?: string } =>
  next === undefined ? {} : { nextCursor: `${next.createdAt.getTime()}_${next.id}` }

// The time stays within what both databases and JavaScript can say.
const CURSOR = /^(\d{1,14})_([0-9a-f-]{36})$/

/** In a query, of a list in the order of time of creation and id: the `nextCursor` of the page before. */
export const Cursor = Type.Optional(
  Type.String({
    pattern: CURSOR.source,
    description: 'must be the nextCursor of an answer',
    examples: ['1767225600000_3f2504e0-4f89-41d3-9a0c-0305e82c3301'],
  }),
)

/** In an answer. */
export const NextCursor = Type.Optional(Type.String({ description: 'leads to the next page; absent on the last one' }))

/** Reads a text that has the form of a cursor. */
export function parseCursor(cursor: string): { readonly createdAt: Date; readonly id: string } {
  const [, time = '', id = ''] = CURSOR.exec(cursor) ?? []
  return { createdAt: new Date(Number(time)), id }
}
