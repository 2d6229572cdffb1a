// HTML as templates: every value is escaped, and only what was made here counts as markup. There is no way to say "raw" on a page. Texts come
// from phones, users and the bank: none of them turns around what stands beside it, and characters that nobody would see are shown.
const MARKUP: unique symbol = Symbol('markup')

/** HTML whose values were escaped when it was made. */
export interface Markup {
  readonly [MARKUP]: string
}

/** What a template takes: texts and numbers are escaped, nothing is shown for `undefined`, `null` and `false`. */
export type Value = string | number | Markup | undefined | null | false | readonly Value[]

/** A piece of HTML. */
export function html(literals: TemplateStringsArray, ...values: readonly Value[]): Markup {
  const placeOf = (index: number): Place => findPlace(literals.slice(0, index + 1).join(''))
  return trust(literals.map((literal, i) => (i === 0 ? literal : render(values[i - 1], () => placeOf(i - 1)) + literal)).join(''))
}

/** The text of a page. */
export const toText = (markup: Markup): string => markup[MARKUP]

/** Markup that a library made from data: an SVG. Never for texts. */
export const trust = (text: string): Markup => ({ [MARKUP]: text })

export const nothing = trust('')

function render(value: Value, placeOf: () => Place): string {
  if (value === undefined || value === null || value === false) return ''
  if (typeof value === 'number') return String(value)
  if (typeof value === 'string') return needsCare(value) ? renderWithCare(value, placeOf()) : escapeText(value)
  return Array.isArray(value) ? value.map((one: Value) => render(one, placeOf)).join('') : (value as Markup)[MARKUP]
}

const escapeText = (text: string): string => text.replace(/["&'<=>]/g, (char) => `&#${char.charCodeAt(0)};`)

/**
 * Where a value stands. `text`: among other text, and elements may be made of it. `plain`: it is read, but holds no elements. `data`: what a
 * browser sends or follows, which must stay as it is.
 */
type Place = 'text' | 'plain' | 'data'

/** `before`: the template up to the value, without the values in it. */
function findPlace(before: string): Place {
  const attribute = /(?:^|\s)([\w:-]+)="[^"]*$/.exec(before)?.[1]
  if (attribute !== undefined) return READ_ATTRIBUTES.has(attribute) ? 'plain' : 'data'
  if (/<[^>]*$/.test(before)) return 'data'
  const element = /<(textarea|option|title)\b[^>]*>[^<]*$/.exec(before)?.[1]
  return element === undefined ? 'text' : element === 'textarea' ? 'data' : 'plain'
}

const READ_ATTRIBUTES: ReadonlySet<string> = new Set(['title', 'alt', 'placeholder', 'aria-label', 'data-label'])

/** True for a text with characters that nobody sees or that turn others around, or with letters that are written from the right. */
const needsCare = (text: string): boolean => HIDDEN.test(text) || FROM_THE_RIGHT.test(text)

/** A text that turns nothing around beside it, and shows its hidden characters as the command line does (`printable` of cli/output.ts). */
function renderWithCare(text: string, place: Place): string {
  if (place === 'data') return escapeText(text)
  const parts = text.split(HIDDEN).map(escapeText)
  const hidden = (text.match(ALL_HIDDEN) ?? []).map((char) => {
    const point = char.codePointAt(0)?.toString(16) ?? ''
    return place === 'plain'
      ? `\\u{${point}}`
      : `<span class="hidden-char" title="U+${point.toUpperCase().padStart(4, '0')}">\\u{${point}}</span>`
  })
  const shown = parts.map((part, i) => part + (hidden[i] ?? '')).join('')
  return place === 'plain' ? shown : `<bdi>${shown}</bdi>`
}

/** Control characters but for those of lines, formats of direction and of other kinds, and what browsers draw nothing for; emoji keep their style. */
const HIDDEN = /(?!\uFE0E|\uFE0F|[\t\n\r])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u
const ALL_HIDDEN = new RegExp(HIDDEN, 'gu')
/** Blocks of scripts that are written from right to left, Hebrew to Arabic, and their forms for presentation. */
const FROM_THE_RIGHT = /[\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC\u{10800}-\u{10FFF}\u{1E800}-\u{1EFFF}]/u
