// Looks for users in a list: by the beginning of the name that somebody types, or by the whole name that a link brings.
import { searchForm } from './elements.ts'
import { html, type Markup } from './markup.ts'
import type { PageCall } from './page.ts'
import type { Query } from './api.ts'

/** What links within a list keep of it. */
export const userFilter = ({ query }: Pick<PageCall, 'query'>): Query => ({
  userId: query['userId'] || undefined,
  user: query['user'] || undefined,
})

/** The same as the API takes it. */
export const userQuery = ({ query }: Pick<PageCall, 'query'>): Query => ({
  userId: query['userId'] || undefined,
  userIdPrefix: query['user']?.trim() || undefined,
})

/** The form; it looks for the beginning of what is typed. `hidden`: the other filters. */
export const userForm = (call: PageCall, path: string, hidden: Readonly<Record<string, string | undefined>>): Markup =>
  searchForm(
    call,
    path,
    html`<div class="field"><label for="user">User</label><input id="user" name="user" type="search" value="${call.query['user'] ?? call.query['userId'] ?? ''}" placeholder="Beginning of the name" autocomplete="off" maxlength="255"></div>`,
    { app: call.application, ...hidden },
  )
