// What a page of the console declares: its address, what it shows, and what can be done on it.
import type { Session } from '../domain/credential/session.ts'
import { type Api, type Query, type Refusal, withQuery } from './api.ts'
import type { Markup } from './markup.ts'
import type { ConsoleParts } from './parts.ts'

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

/** Where an action leads: to another page, or to one that is shown this once, because it holds a secret. */
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
  /** Milliseconds. */
  readonly now: number
  /** What the API refused of the form. */
  readonly refusal: Refusal | undefined
  /** May change something. */
  readonly isAdmin: boolean
  /** May also do what back ends of the application do: registrations, operations, messages. */
  readonly isActing: boolean
  /** Path and query of the page. */
  readonly here: string
}

export interface ApplicationSummary {
  readonly id: string
  readonly isDefault: boolean
}

export interface Form {
  /** Without spaces around it; empty when it was not sent. */
  readonly text: (name: string) => string
  /** The text, or undefined when it is empty. */
  readonly optional: (name: string) => string | undefined
  readonly all: (name: string) => readonly string[]
  readonly isChecked: (name: string) => boolean
  readonly entries: readonly (readonly [string, string])[]
  readonly isEmpty: boolean
}

/** The form of a body in `application/x-www-form-urlencoded`; line ends are those of Unix. */
export function readForm(body: string): Form {
  const entries = [...new URLSearchParams(body)].map(([name, value]) => [name, value.replaceAll('\r\n', '\n')] as const)
  const all = (name: string) => entries.filter(([other]) => other === name).map(([, value]) => value)
  const text = (name: string) => (all(name)[0] ?? '').trim()
  return {
    text,
    optional: (name) => text(name) || undefined,
    all,
    isChecked: (name) => all(name).length > 0,
    entries,
    isEmpty: entries.length === 0,
  }
}

/** A link to a page, in the application that the caller is in. */
export const link = ({ application }: Pick<PageCall, 'application'>, path: string, query: Query = {}): string =>
  withQuery(`/console${path}`, { app: application, ...query })

/** Where an action leads, with what is said there. */
export const done = (call: Pick<PageCall, 'application'>, path: string, what: Done, query: Query = {}): Outcome => ({
  to: link(call, path, { ...query, done: what }),
})

/** What a page says after an action: a link may choose among these texts, and bring none. */
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
