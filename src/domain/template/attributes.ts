// Renders the rows of the form on the phone. A template maps each slot of a row to a parameter of the operation (mobile-token §5). Amounts are
// formatted by locale from decimal text, never through binary floating point.
import { safeUrl } from './ui.ts'
import type { AttributeTemplate, OperationParameters } from './template.ts'
import { createMemory } from '../../lib/memory.ts'

/** `type` comes first, because the parser of one SDK needs it early. */
export interface RenderedAttribute {
  readonly type: string
  readonly id: string
  readonly label: string
  readonly [member: string]: unknown
}

/** Fills an attribute with the parameters of the operation. Undefined when a required parameter is missing. An unknown type becomes KEY_VALUE. */
export function renderAttribute(
  template: AttributeTemplate,
  parameters: OperationParameters,
  locale: string,
): RenderedAttribute | undefined {
  const type = Object.hasOwn(KINDS, template.type) ? template.type : 'KEY_VALUE'
  const kind = KINDS[type]
  if (kind === undefined) return undefined
  const values = readSlots(template, parameters, [...kind.required, ...kind.optional])
  if (kind.required.some((slot) => values[slot] === undefined)) return undefined
  const head = { type, id: template.id, label: template.text }
  return {
    ...head,
    ...kind.render(
      (slot) => values[slot] ?? '',
      (slot) => keep(slot, values[slot]),
      locale,
    ),
  }
}

interface Kind {
  /** An attribute without a value for each of these slots is left out. */
  readonly required: readonly string[]
  readonly optional: readonly string[]
  /** Other names that templates may have for slots. */
  readonly aliases?: Readonly<Record<string, string>>
  /** `read` returns the value of a slot. `copy` returns an object with the slot as its member, empty without a value. */
  readonly render: (
    read: (slot: string) => string,
    copy: (slot: string) => Record<string, string>,
    locale: string,
  ) => Record<string, unknown>
}

function readSlots(
  { params }: AttributeTemplate,
  parameters: OperationParameters,
  slots: readonly string[],
): Readonly<Record<string, string | undefined>> {
  const valueOf = (slot: string): string | undefined => {
    const name = Object.hasOwn(params, slot) ? params[slot] : undefined
    return name !== undefined && Object.hasOwn(parameters, name) ? parameters[name] : undefined
  }
  return Object.fromEntries(slots.map((slot) => [slot, valueOf(slot)]))
}

const keep = (name: string, value: string | undefined): Record<string, string> => (value === undefined ? {} : { [name]: value })

/** The members of one amount of a conversion. Their names begin with `source` or `target`. */
function renderSide(side: 'source' | 'target', read: (slot: string) => string, locale: string): Record<string, unknown> {
  const money = formatMoney(read(`${side}Amount`), read(`${side}Currency`), locale)
  return Object.fromEntries(
    Object.entries(money).map(([name, value]) => [`${side}${name.charAt(0).toUpperCase()}${name.slice(1)}`, value]),
  )
}

/** iOS refuses an alert of another type. */
function readAlertType(text: string): string {
  const type = text.trim().toUpperCase()
  return ['SUCCESS', 'INFO', 'WARNING', 'ERROR'].includes(type) ? type : 'INFO'
}

const KINDS: Readonly<Record<string, Kind>> = {
  AMOUNT: {
    required: ['amount', 'currency'],
    optional: [],
    render: (read, _copy, locale) => ({ ...formatMoney(read('amount'), read('currency'), locale) }),
  },
  AMOUNT_CONVERSION: {
    required: ['sourceAmount', 'sourceCurrency', 'targetAmount', 'targetCurrency'],
    optional: ['dynamic'],
    render: (read, _copy, locale) => ({
      dynamic: read('dynamic').trim().toLowerCase() === 'true',
      ...renderSide('source', read, locale),
      ...renderSide('target', read, locale),
    }),
  },
  KEY_VALUE: { required: ['value'], optional: [], render: (_read, copy) => copy('value') },
  NOTE: { required: ['note'], optional: [], render: (_read, copy) => copy('note') },
  HEADING: {
    required: [],
    optional: ['level'],
    render: (read) => (/^\d{1,3}$/.test(read('level')) ? { level: Number(read('level')) } : {}),
  },
  // Published SDKs refuse an alert without a message, but need no title.
  ALERT: {
    required: ['message'],
    optional: ['alertType', 'title'],
    // The reference documents this name.
    aliases: { type: 'alertType' },
    render: (read, copy) => ({ alertType: readAlertType(read('alertType')), ...copy('title'), ...copy('message') }),
  },
  IMAGE: {
    required: ['thumbnailUrl'],
    optional: ['originalUrl'],
    render: (_read, copy) => ({ ...copy('thumbnailUrl'), ...copy('originalUrl') }),
  },
  PARTY_INFO: {
    required: ['name'],
    optional: ['logoUrl', 'description', 'websiteUrl'],
    // One SDK fails when the website is missing. Another leaves out the row when a URL is invalid.
    render: (read, copy) => ({
      partyInfo: {
        logoUrl: safeUrl(read('logoUrl')),
        ...copy('name'),
        description: read('description'),
        websiteUrl: safeUrl(read('websiteUrl')),
      },
    }),
  },
}

/** Slots by type of attribute. */
export const ATTRIBUTE_SLOTS: Readonly<Record<string, Pick<Kind, 'required' | 'optional' | 'aliases'>>> = KINDS

/** A number that JSON.stringify writes with all its digits. */
interface JsonNumber {
  readonly rawJSON: string
}

interface Money {
  /**
   * Absent when the text is not a decimal number, or has more than 38 digits, which published SDKs cannot read. JSON has all digits, also beyond
   * 2^53. A phone that reads a double rounds them, so it shows the formatted members instead.
   */
  readonly amount?: JsonNumber
  readonly currency: string
  readonly amountFormatted: string
  readonly currencyFormatted: string
  readonly valueFormatted: string
}

/**
 * Formats an amount with at least the fraction digits of its currency and at most 18, rounded towards zero so that nobody sees more money than is
 * paid. A currency without a symbol keeps its code. An amount that is not a number, or has more than 256 characters, stays as it is.
 */
export function formatMoney(amount: string, currency: string, locale: string): Money {
  const { format, symbol, formatWithSymbol } = readFormats(locale, currency)
  const isNumber = amount.length <= CHARACTERS_MAX && NUMBER.test(amount)
  const digits = amount.replace(/^(-?)0+(?=\d)/, '$1')
  const amountFormatted = isNumber ? format(amount) : amount
  return {
    ...(isNumber && digits.replace(/\D/g, '').length <= DIGITS_MAX && { amount: toJsonNumber(digits) }),
    currency,
    amountFormatted,
    currencyFormatted: symbol,
    valueFormatted: isNumber && formatWithSymbol ? formatWithSymbol(amount) : `${amountFormatted} ${symbol}`.trim(),
  }
}

interface Formats {
  readonly format: (amount: string) => string
  readonly symbol: string
  /** Undefined for a text that does not look like a currency code. */
  readonly formatWithSymbol: ((amount: string) => string) | undefined
}

/** Remembers formatters: making one costs far more than using it, and phones request their list every few seconds. */
function readFormats(locale: string, currency: string): Formats {
  const key = `${locale} ${currency}`
  const known = formats.get(key)
  if (known !== undefined) return known
  const made = createFormats(locale, currency)
  formats.set(key, made)
  return made
}

function createFormats(locale: string, currency: string): Formats {
  // A language that Node does not know is formatted as English, not as the language of the machine.
  const locales = [locale, 'en']
  const style = /^[A-Za-z]{3}$/.test(currency) ? ({ style: 'currency', currency } as const) : {}
  const minimumFractionDigits = new Intl.NumberFormat(locales, style).resolvedOptions().minimumFractionDigits ?? 0
  const digits = {
    // An unknown currency gets two digits.
    minimumFractionDigits: 'style' in style ? minimumFractionDigits : 2,
    maximumFractionDigits: FRACTION_DIGITS_MAX,
    roundingMode: 'trunc',
  } as const
  const plain = new Intl.NumberFormat(locales, digits)
  const full = new Intl.NumberFormat(locales, { ...style, ...digits })
  const symbol = full.formatToParts(0).find(({ type }) => type === 'currency')?.value
  const isNamed = symbol !== undefined && symbol !== NO_SYMBOL
  return {
    format: (amount) => plain.format(amount as `${number}`),
    symbol: isNamed ? symbol : currency,
    formatWithSymbol: isNamed ? (amount) => full.format(amount as `${number}`) : undefined,
  }
}

/** JSON.rawJSON, which Node has and the types do not have yet. */
const toJsonNumber = (JSON as unknown as { rawJSON: (text: string) => JsonNumber }).rawJSON

// The whole process shares the formats, because they depend only on locale and currency.
const formats = createMemory<Formats>({ max: 500 })
const NUMBER = /^-?\d+(\.\d+)?$/
// Intl writes an amount from 10^309 on as infinity.
const CHARACTERS_MAX = 256
const DIGITS_MAX = 38
const FRACTION_DIGITS_MAX = 18
const NO_SYMBOL = '¤'
