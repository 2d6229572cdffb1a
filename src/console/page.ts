// Declares pages of the console: the address of a page, its content, and its actions.
import type { FastifyRequest } from 'fastify'
import type { Session, SessionParts, Tickets } from '../domain/credential/session.ts'
import type { OperationParts } from '../domain/operation/operation.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { fromUtf8 } from '../lib/bytes.ts'
import { PawlError } from '../lib/errors.ts'
import { type Api, type Query, type Refusal, withQuery } from './api.ts'
import type { Markup } from './markup.ts'

/** What the console needs from the process; context.ts satisfies it. */
export interface ConsoleParts extends SessionParts, OperationParts {
  readonly tickets: Tickets
  readonly metrics: Pick<Metrics, 'look'>
  readonly settings: SessionParts['settings'] & { readonly publicUrl?: string; readonly adminActsOnDefaultApplication: boolean }
}

export type Section =
  | 'overview'
  | 'registrations'
  | 'operations'
  | 'inbox'
  | 'applications'
  | 'templates'
  | 'webhooks'
  | 'certificates'
  | 'config'
  | 'oidc'
  | 'audit'
  | 'credentials'

export interface Page {
  /** Below /console. */
  readonly path: string
  readonly section: Section
  readonly render: (call: PageCall) => Promise<View>
  /**
   * By the `action` of the form that is posted to the page. What the API refuses is shown on the page itself, with what was typed.
   */
  readonly actions?: Readonly<Record<string, (call: PageCall) => Promise<Outcome>>>
}

export interface View {
  readonly title: string
  readonly body: Markup
}

/** A file for the browser to keep. */
export interface Download {
  readonly fileName: string
  readonly type: string
  readonly text: string
}

/** Where an action leads: to another page, to a page that is shown this once, because it holds a secret, or to a file. */
export type Outcome = { readonly to: string } | View | Download

export interface PageCall {
  readonly parts: ConsoleParts
  readonly session: Session
  readonly api: Api
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  /** What was typed; empty where nothing was. */
  readonly form: Form
  readonly applications: readonly ApplicationSummary[]
  /** The one that pages are about; undefined when there is none at all. */
  readonly application: string | undefined
  /** Milliseconds since 1970-01-01 UTC. */
  readonly now: number
  /** What the API refused of the form. */
  readonly refusal: Refusal | undefined
  /** The caller is an administrator, and may change something. */
  readonly isAdmin: boolean
  /** The caller may also do what back ends of the application do: registrations, operations, messages. */
  readonly isActing: boolean
  /** The address of /console/, as rootOf. */
  readonly root: string
  /** The address of the page, with its query. */
  readonly here: string
}

export interface ApplicationSummary {
  readonly id: string
  readonly isDefault: boolean
}

export interface Form {
  /** The first value of a name, without spaces around it; empty when it was not sent. */
  readonly text: (name: string) => string
  /** The text, or undefined when it is empty. */
  readonly optional: (name: string) => string | undefined
  readonly all: (name: string) => readonly string[]
  /** The words of a value, which have spaces or commas between them. */
  readonly words: (name: string) => readonly string[]
  readonly isChecked: (name: string) => boolean
  readonly entries: readonly (readonly [string, string])[]
  readonly isEmpty: boolean
}

/**
 * The form that a request was sent with, of `membersMax` members at most; empty where none was sent. Throws REQUEST_INVALID for a longer
 * one, and for what is not UTF-8.
 */
export function formOf({ body }: FastifyRequest, membersMax = MEMBERS_MAX): Form {
  const bytes = (body as Buffer | undefined) ?? Buffer.alloc(0)
  let members = 1
  for (let at = bytes.indexOf('&'); at !== -1 && members <= membersMax; at = bytes.indexOf('&', at + 1)) members += 1
  if (members > membersMax) throw new PawlError('REQUEST_INVALID', { detail: `a form of more than ${membersMax} members` })
  try {
    return readForm(fromUtf8(bytes))
  } catch (cause) {
    throw new PawlError('REQUEST_INVALID', { detail: 'the form is not UTF-8', cause })
  }
}

/** The form of an action; undefined where the page was sent another one, or none. */
export const formOfAction = ({ form }: Pick<PageCall, 'form'>, action: string): Form | undefined =>
  form.text('action') === action ? form : undefined

/** The form of a text in `application/x-www-form-urlencoded`; line ends are those of Unix. */
export function readForm(body: string): Form {
  const entries = [...new URLSearchParams(body)].map(([name, value]) => [name, value.replaceAll('\r\n', '\n')] as const)
  const byName = Map.groupBy(entries, ([name]) => name)
  const all = (name: string) => (byName.get(name) ?? []).map(([, value]) => value)
  const text = (name: string) => (all(name)[0] ?? '').trim()
  return {
    text,
    optional: (name) => text(name) || undefined,
    all,
    words: (name) =>
      text(name)
        .split(/[\s,]+/)
        .filter(Boolean),
    isChecked: (name) => all(name).length > 0,
    entries,
    isEmpty: entries.length === 0,
  }
}

/**
 * The address of /console/ as seen from the page at `url`. It is relative, because a proxy may have taken a prefix off the path, which pawl need
 * not know (docs/OPERATIONS.md, "Below a prefix").
 */
export function rootOf({ url }: Pick<FastifyRequest, 'url'>): string {
  const [path = ''] = url.split('?')
  const below = path.split('/').length - '/console/'.split('/').length
  return below < 0 ? './console/' : `./${'../'.repeat(below)}`
}

/** A link to a page, in the application that the caller is in. */
export const link = ({ application, root }: Pick<PageCall, 'application' | 'root'>, path: string, query: Query = {}): string =>
  withQuery(`${root}${path.slice(1)}`, { app: application, ...query })

/** Where an action leads, with what is said there. */
export const done = (call: Pick<PageCall, 'application' | 'root'>, path: string, what: Done, query: Query = {}): Outcome => ({
  to: link(call, path, { ...query, done: what }),
})

/** What a page says after an action. A link names one of these texts, and cannot bring a text of its own. */
export const DONE = {
  created: 'Created.',
  saved: 'Saved.',
  removed: 'Removed.',
  committed: 'The phone is committed: it can sign from now on.',
  blocked: 'Blocked. The phone can sign nothing until it is unblocked.',
  unblocked: 'Unblocked.',
  canceled: 'The operation is canceled.',
  approved: 'The password was right: the operation is approved.',
  replayed: 'Waiting again. It is sent within a second or two.',
  ended: 'The session is ended.',
  sent: 'The message is in the inbox.',
} as const

export type Done = keyof typeof DONE

// As many members of the form of a template as 256 KiB hold, the longest body.
const MEMBERS_MAX = 5_000
