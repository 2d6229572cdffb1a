// Renders HTML from templates. Every value is escaped, and only the results of this file count as markup. Pages have no way to insert raw text. Texts
// come from phones, users and the bank. Therefore no text can change the direction of its neighbours, and hidden characters are shown.
const MARKUP: unique symbol = Symbol('markup')

/** HTML whose values were escaped when it was made. */
export interface Markup {
  readonly [MARKUP]: string
}

/** The values of a template. Texts and numbers are escaped. `undefined`, `null` and `false` show nothing. */
export type Value = string | number | Markup | undefined | null | false | readonly Value[]

/** Renders a piece of HTML. */
export function html(literals: TemplateStringsArray, ...values: readonly Value[]): Markup {
  const placeOf = (index: number): Place => findPlace(literals.slice(0, index + 1).join(''))
  return trust(literals.map((literal, i) => (i === 0 ? literal : render(values[i - 1], () => placeOf(i - 1)) + literal)).join(''))
}

/** The HTML text of a page. */
export const toText = (markup: Markup): string => markup[MARKUP]

/** Wraps markup that a library made from data, such as an SVG. Never call it for texts. */
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
 * The place of a value. `text`: within text, where elements are allowed. `plain`: a person reads it, but elements are not allowed. `data`: the
 * browser sends or follows it, so it must not change.
 */
type Place = 'text' | 'plain' | 'data'

/** Finds the place of a value. `before`: the template up to the value, without the values in it. */
function findPlace(before: string): Place {
  const attribute = /(?:^|\s)([\w:-]+)="[^"]*$/.exec(before)?.[1]
  if (attribute !== undefined) return READ_ATTRIBUTES.has(attribute) ? 'plain' : 'data'
  if (/<[^>]*$/.test(before)) return 'data'
  const element = /<(textarea|option|title)\b[^>]*>[^<]*$/.exec(before)?.[1]
  return element === undefined ? 'text' : element === 'textarea' ? 'data' : 'plain'
}

const READ_ATTRIBUTES: ReadonlySet<string> = new Set(['title', 'alt', 'placeholder', 'aria-label'])

/** True for a text with hidden characters, characters that change the direction of others, or letters that are written from the right. */
const needsCare = (text: string): boolean => HIDDEN.test(text) || FROM_THE_RIGHT.test(text)

/**
 * Renders a text so that it does not change the direction of its neighbours. Shows hidden characters in the form of the command line (`printable` of
 * cli/output.ts).
 */
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

/** Control characters except line breaks and tabs, format characters, and characters that browsers do not draw. Emoji keep their style. */
const HIDDEN = /(?!\uFE0E|\uFE0F|[\t\n\r])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u
const ALL_HIDDEN = new RegExp(HIDDEN, 'gu')
/** Unicode blocks of scripts that are written from right to left, Hebrew to Arabic, and their presentation forms. */
const FROM_THE_RIGHT = /[\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC\u{10800}-\u{10FFF}\u{1E800}-\u{1EFFF}]/u
