// HTML as templates: every value is escaped, and only what was made here counts as markup. There is no way to say "raw" on a page.
import { html as escape } from 'ghtml'

const MARKUP: unique symbol = Symbol('markup')

/** HTML whose values were escaped when it was made. */
export interface Markup {
  readonly [MARKUP]: string
}

/** What a template takes: texts and numbers are escaped, nothing is shown for `undefined`, `null` and `false`. */
export type Value = string | number | Markup | undefined | null | false | readonly Value[]

/** A piece of HTML. */
export function html(literals: TemplateStringsArray, ...values: readonly Value[]): Markup {
  return trust(literals.map((literal, i) => (i === 0 ? literal : render(values[i - 1]) + literal)).join(''))
}

/** The text of a page. */
export const toText = (markup: Markup): string => markup[MARKUP]

/** Markup that a library made from data: an SVG. Never for texts. */
export const trust = (text: string): Markup => ({ [MARKUP]: text })

export const nothing = trust('')

function render(value: Value): string {
  if (value === undefined || value === null || value === false) return ''
  if (typeof value === 'string' || typeof value === 'number') return escape`${String(value)}`
  return Array.isArray(value) ? value.map(render).join('') : (value as Markup)[MARKUP]
}
