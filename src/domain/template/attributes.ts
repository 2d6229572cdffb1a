// Rows of the form on the phone: the template maps each slot of a row to a parameter of the operation (mobile-token §5). Amounts are formatted by
// locale, from decimal text, never through binary floating point.
import { safeUrl } from './ui.ts'
import type { AttributeTemplate, OperationParameters } from './template.ts'
import { createMemory } from '../../lib/memory.ts'

/** `type` is the first member: the parser of one SDK finds its way more easily so. */
export interface RenderedAttribute {
  readonly type: string
  readonly id: string
  readonly label: string
  readonly [member: string]: unknown
}

/** The attribute with the parameters of the operation; undefined when one that it needs is missing. An unknown type shows its value. */
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
  /** Without the parameter of one of these there is no attribute. */
  readonly required: readonly string[]
  readonly optional: readonly string[]
  /** Other names that templates may have for slots. */
  readonly aliases?: Readonly<Record<string, string>>
  /** `read` gives the value of a slot, `copy` a member of the slot's name, or none without a value. */
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

/** The members of an amount of a conversion: `source` and `target` in front of each name. */
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
  // Published SDKs refuse an alert without its message, and do without a title.
  ALERT: {
    required: ['message'],
    optional: ['alertType', 'title'],
    // The name that the reference documents.
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
    // One SDK fails when the website is missing, another leaves out the row when a URL is not one.
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

/** A number that JSON.stringify writes digit by digit as it stands. */
interface JsonNumber {
  readonly rawJSON: string
}

interface Money {
  /**
   * Absent when the given text is not a decimal number, or one of more than 38 digits, which published SDKs cannot read. All digits are on
   * the wire, also those beyond 2^53: there a phone that reads a double rounds for itself, which is why it shows the formatted members.
   */
  readonly amount?: JsonNumber
  readonly currency: string
  readonly amountFormatted: string
  readonly currencyFormatted: string
  readonly valueFormatted: string
}

/**
 * Formats an amount: at least the fraction digits of its currency, at most 18, rounded towards zero so that nobody sees more money than is
 * paid. A currency without a symbol keeps its code, an amount that is not a number, or one of more than 256 characters, stays as it is.
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

/** Making a formatter costs far more than using one, and phones ask for their list every few seconds. */
function readFormats(locale: string, currency: string): Formats {
  const key = `${locale} ${currency}`
  const known = formats.get(key)
  if (known !== undefined) return known
  const made = createFormats(locale, currency)
  formats.set(key, made)
  return made
}

function createFormats(locale: string, currency: string): Formats {
  // A language that the runtime does not know is shown as English, not as the language of the machine.
  const locales = [locale, 'en']
  const style = /^[A-Za-z]{3}$/.test(currency) ? ({ style: 'currency', currency } as const) : {}
  const minimumFractionDigits = new Intl.NumberFormat(locales, style).resolvedOptions().minimumFractionDigits ?? 0
  const digits = {
    // Two are shown where nothing is known about the currency.
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

/** In every runtime that pawl runs on, but not yet in the types. */
const toJsonNumber = (JSON as unknown as { rawJSON: (text: string) => JsonNumber }).rawJSON

// Of the whole process: a format depends on its locale and currency and on nothing else.
const formats = createMemory<Formats>({ max: 500 })
const NUMBER = /^-?\d+(\.\d+)?$/
// Intl writes an amount from 10^309 on as infinity.
const CHARACTERS_MAX = 256
const DIGITS_MAX = 38
const FRACTION_DIGITS_MAX = 18
const NO_SYMBOL = '¤'
