// Lists records of users, with a search by the beginning or a part of the name that somebody types, or by the whole name in a link.
import type { Query } from './api.ts'
import { empty, field, pager, searchForm, UNTYPED } from './elements.ts'
import { html, type Markup, type Value } from './markup.ts'
import { link, type PageCall } from './page.ts'

interface Found<Item> {
  readonly items: readonly Item[]
  readonly nextCursor: string | undefined
}

export interface UserList<Item> {
  readonly path: string
  /** The parameters of the query that narrow the list, beside the user. */
  readonly filters: Readonly<Record<string, string | undefined>>
  /** Links that change a filter. `kept`: all parameters of the search. */
  readonly chips: (kept: Query) => Value
  readonly read: (search: Query) => Promise<Found<Item>>
  readonly render: (items: readonly Item[]) => Promise<Markup>
  /** In place of a list in which there is nothing at all. */
  readonly none: Markup
  /** The text in place of a list in which nothing fits the search. */
  readonly noneFits: string
}

/** Renders the form of the search, the filters, the records, and the links to other pages of the list. */
export async function userList<Item>(call: PageCall, list: UserList<Item>): Promise<Markup> {
  const { query } = call
  const { path, filters } = list
  const kept = { userId: query['userId'] || undefined, user: query['user'] || undefined, ...filters }
  const { items, nextCursor, isAnywhere } = await searchUsers(call, list.read)
  const anywhere = { ...kept, anywhere: '1' }
  const ends = html`${kept.user !== undefined && !isAnywhere && html`<p class="hint">Names that begin so. <a href="${link(call, path, anywhere)}">Look anywhere in the name</a></p>`}${pager(
    call,
    path,
    nextCursor,
    isAnywhere ? { by: 'cursor', kept: anywhere, label: 'Look further →' } : { by: 'cursor', kept },
  )}`
  const isNarrow = [...Object.values(kept), query['cursor']].some(Boolean)
  const nothingFits = () =>
    empty(
      'Nothing matches',
      nextCursor === undefined ? list.noneFits : 'Nothing among the newest: there are older ones.',
      html`<a class="button is-plain" href="${link(call, path)}">Show all</a>`,
    )
  const name = field(UNTYPED, 'user', 'User', {
    type: 'search',
    value: query['user'] ?? query['userId'],
    placeholder: 'Name, or a part of it',
  })
  return html`${searchForm(call, path, name, { app: call.application, ...filters })}${list.chips(kept)}
    ${items.length === 0 && !isNarrow ? list.none : html`${items.length === 0 ? nothingFits() : await list.render(items)}${ends}`}`
}

/**
 * Reads a list of the users whose names begin with the typed text, by an index. If no name does, or if somebody asked for it, the text is searched
 * anywhere in the names, 50,000 records at a time.
 */
async function searchUsers<Item>(
  { query }: PageCall,
  read: (search: Query) => Promise<Found<Item>>,
): Promise<Found<Item> & { readonly isAnywhere: boolean }> {
  const typed = query['user']?.trim() || undefined
  const userId = query['userId'] || undefined
  if (query['anywhere'] === undefined) {
    const found = await read({ userId, userIdPrefix: typed })
    if (typed === undefined || found.items.length > 0) return { ...found, isAnywhere: false }
  }
  return { ...(await read({ userId, userIdPart: typed })), isAnywhere: typed !== undefined }
}
