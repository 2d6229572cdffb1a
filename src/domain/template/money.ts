// Formats amounts for the phone: by locale, from decimal text, never through binary floating point (mobile-token §5).
import { createMemory } from '../../lib/memory.ts'

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
