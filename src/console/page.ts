// Declares pages of the console: the address of a page, its content, and its actions.
import type { FastifyRequest } from 'fastify'
import type { Application } from '../api/cloud/admin/applications.ts'
import type { Session, SessionParts, Tickets } from '../domain/credential/session.ts'
import type { OperationParts } from '../domain/operation/operation.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { sha256 } from '../crypto/hash.ts'
import { toBase64Url } from '../lib/base64.ts'
import { fromUtf8, utf8 } from '../lib/bytes.ts'
import { PawlError } from '../lib/errors.ts'
import { type Api, type Query, Refusal, withQuery } from './api.ts'
import type { Markup } from './markup.ts'

/** Names the parts that the console needs from the process. context.ts provides them. */
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
  /** The path below /console. */
  readonly path: string
  readonly section: Section
  readonly render: (call: PageCall) => Promise<View>
  /** Handles each form that is posted to the page, by the form's `action`. A refusal of the API is shown on the same page, with the typed values. */
  readonly actions?: Readonly<Record<string, (call: PageCall) => Promise<Outcome>>>
}

export interface View {
  readonly title: string
  readonly body: Markup
}

/** A file for the browser to save. */
export interface Download {
  readonly fileName: string
  readonly type: string
  readonly text: string
}

/** The result of an action: a link to another page, a page that is shown only once because it holds a secret, or a file. */
export type Outcome = { readonly to: string } | View | Download

export interface PageCall {
  readonly parts: ConsoleParts
  readonly session: Session
  readonly api: Api
  /** The parameters of the path. Empty are those that the path of the page does not have. */
  readonly params: Readonly<Record<'id' | 'name' | 'deliveryId', string>>
  readonly query: Readonly<Record<string, string>>
  /** The typed values; empty if no form was sent. */
  readonly form: Form
  readonly applications: readonly Application[]
  /** The application that the page is about; empty if there is none at all. */
  readonly application: string
  /** Milliseconds since 1970-01-01 UTC. */
  readonly now: number
  /** The refusal of the API for the form. */
  readonly refusal: Refusal | undefined
  /** Whether the caller is an administrator, who may change settings. */
  readonly isAdmin: boolean
  /** Whether the caller may also act like back ends of the application: registrations, operations, messages. */
  readonly isActing: boolean
  /** The address of /console/, as rootOf returns it. */
  readonly root: string
  /** The address of the page, with its query. */
  readonly here: string
}

export interface Form {
  /** The first value of a name, without spaces around it; empty if it was not sent. */
  readonly text: (name: string) => string
  /** The text, or undefined if it is empty. */
  readonly optional: (name: string) => string | undefined
  readonly all: (name: string) => readonly string[]
  /** The words of a value, which are separated by spaces or commas. */
  readonly words: (name: string) => readonly string[]
  readonly isChecked: (name: string) => boolean
  readonly entries: readonly (readonly [string, string])[]
  readonly isEmpty: boolean
}

/**
 * The form in the body of a request, with at most `membersMax` members; empty without a body. Throws REQUEST_INVALID for more members, and for a body
 * that is not UTF-8.
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

/** Parses a text in `application/x-www-form-urlencoded`. Line ends become those of Unix. */
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

export const NO_FORM = readForm('')

/**
 * The time of a line in UTC, such as `2027-01-31T12:00`, in units of so many milliseconds since 1970-01-01. Another text stays as it is, and the API
 * refuses it: Date.parse reads February 30 as March 2.
 */
export function readTime(text: string, unitMs = 1): number | string {
  const time = Date.parse(`${text}Z`)
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text) ? Math.floor(time / unitMs) : text
}

/** A short hash of stored values, in the form that shows them. They have the same members in the same order each time that they are read. */
export const versionOf = (stored: unknown): string => toBase64Url(sha256(utf8(JSON.stringify(stored)))).slice(0, 16)

/**
 * Throws a Refusal with the status CHANGED if somebody has changed the stored values since the page was made that sent the form. The page is then
 * shown anew, with the values that are stored now. Two forms that are sent within the same milliseconds both pass, and the last one counts, because
 * the values are read before they are written.
 */
export function requireUnchanged({ form }: Pick<PageCall, 'form'>, stored: unknown): void {
  if (form.text('seen') !== versionOf(stored))
    throw new Refusal(
      CHANGED,
      'Somebody changed this after the page was loaded, and nothing was saved. The form shows what is stored now',
      [],
    )
}

/** The status of a refusal of a form whose page shows what is no longer so. */
export const CHANGED = 409

/**
 * The address of /console/ as seen from the page at `url`. It is relative, because a proxy may have removed a prefix of the path that pawl does not
 * know (docs/OPERATIONS.md, "Below a prefix").
 */
export function rootOf({ url }: Pick<FastifyRequest, 'url'>): string {
  const [path = ''] = url.split('?')
  const below = path.split('/').length - '/console/'.split('/').length
  return below < 0 ? './console/' : `./${'../'.repeat(below)}`
}

/** A link to a page, with the current application. */
export const link = ({ application, root }: Pick<PageCall, 'application' | 'root'>, path: string, query: Query = {}): string =>
  withQuery(`${root}${path.slice(1)}`, { app: application, ...query })

/** The outcome of an action that leads to a page, with the text to show there. */
export const done = (call: Pick<PageCall, 'application' | 'root'>, path: string, what: Done, query: Query = {}): Outcome => ({
  to: link(call, path, { ...query, done: what }),
})

/** The texts that a page shows after an action. A link names one of these texts and cannot contain a text of its own. */
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

// The most members of a template form that fit into 256 KiB, the longest body.
const MEMBERS_MAX = 5_000
