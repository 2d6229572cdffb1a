// Searches users in a list: by the beginning or a part of the name that somebody types, or by the whole name in a link.
import type { Query } from './api.ts'
import { pager, searchForm } from './elements.ts'
import { html, type Markup } from './markup.ts'
import { link, type PageCall } from './page.ts'

/** The part of a list's query that its links keep. */
export const userFilter = ({ query }: Pick<PageCall, 'query'>): Query => ({
  userId: query['userId'] || undefined,
  user: query['user'] || undefined,
})

export interface FoundUsers<Answer> {
  readonly answer: Answer
  /** Whether the typed text was searched anywhere in the names, because no name begins with it or because somebody asked for that. */
  readonly isAnywhere: boolean
}

/**
 * Reads a list of the users whose names begin with the typed text, by an index. If no name does, or if somebody asked for it, the text is searched
 * anywhere in the names, 50,000 records at a time.
 */
export async function searchUsers<Answer>(
  { query }: Pick<PageCall, 'query'>,
  read: (search: Query) => Promise<Answer>,
  isEmpty: (answer: Answer) => boolean,
): Promise<FoundUsers<Answer>> {
  const typed = query['user']?.trim() || undefined
  const userId = query['userId'] || undefined
  if (query['anywhere'] === undefined) {
    const answer = await read({ userId, userIdPrefix: typed })
    if (typed === undefined || !isEmpty(answer)) return { answer, isAnywhere: false }
  }
  return { answer: await read({ userId, userIdPart: typed }), isAnywhere: typed !== undefined }
}

/** The links below a page of such a list. `filter`: all parameters of the search. */
export function userPager(
  call: PageCall,
  path: string,
  filter: Query,
  isAnywhere: boolean,
  nextCursor: string | undefined,
): Markup {
  const kept = { ...filter, ...(isAnywhere && { anywhere: '1' }) }
  const isTyped = filter['user'] !== undefined
  return html`${isTyped && !isAnywhere && html`<p class="hint">Names that begin so. <a href="${link(call, path, { ...filter, anywhere: '1' })}">Look anywhere in the name</a></p>`}${pager(
    call.query['cursor'] === undefined ? undefined : link(call, path, kept),
    nextCursor === undefined ? undefined : link(call, path, { ...kept, cursor: nextCursor }),
    isAnywhere ? 'Look further →' : undefined,
  )}`
}

/** The form. `hidden`: the other filters. */
export const userForm = (call: PageCall, path: string, hidden: Readonly<Record<string, string | undefined>>): Markup =>
  searchForm(
    call,
    path,
    html`<div class="field"><label for="user">User</label><input id="user" name="user" type="search" value="${call.query['user'] ?? call.query['userId'] ?? ''}" placeholder="Name, or a part of it" autocomplete="off" maxlength="255"></div>`,
    { app: call.application, ...hidden },
  )
