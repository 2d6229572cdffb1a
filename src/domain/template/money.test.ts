// Tests amounts by locale, from decimal text (mobile-token §5).
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatMoney } from './attributes.ts'

/** The amount as the JSON has it. */
const onWire = (amount: string, currency: string, locale: string): unknown =>
  JSON.parse(JSON.stringify(formatMoney(amount, currency, locale)))

describe('formatMoney', () => {
  test.each([
    ['10', 'EUR', 'en', '10.00', '€', '€10.00'],
    ['1492.5', 'CZK', 'cs-CZ', '1\u00a0492,50', 'Kč', '1\u00a0492,50\u00a0Kč'],
    ['1492.5', 'CZK', 'en', '1,492.50', 'CZK', 'CZK\u00a01,492.50'],
    ['1', 'USD', 'en-GB', '1.00', 'US$', 'US$1.00'],
    ['1000', 'JPY', 'en', '1,000', '¥', '¥1,000'],
    ['0.00000001', 'BTC', 'en', '0.00000001', 'BTC', 'BTC\u00a00.00000001'],
    ['5', 'XYZ', 'de', '5,00', 'XYZ', '5,00\u00a0XYZ'],
    ['5', 'USDT', 'en', '5.00', 'USDT', '5.00 USDT'],
    ['5', 'XXX', 'en', '5.00', 'XXX', '5.00 XXX'],
    ['5', '', 'en', '5.00', '', '5.00'],
    ['0.9999999999999999999', 'EUR', 'en', '0.999999999999999999', '€', '€0.999999999999999999'],
    ['-1.239', 'EUR', 'en', '-1.239', '€', '-€1.239'],
    ['10', 'EUR', 'qq', '10.00', '€', '€10.00'],
  ])('%s %s in %s', (amount, currency, locale, amountFormatted, currencyFormatted, valueFormatted) => {
    expect(onWire(amount, currency, locale)).toEqual({
      amount: Number(amount),
      currency,
      amountFormatted,
      currencyFormatted,
      valueFormatted,
    })
  })

  test.each(['abc', '', '1,5', '1e3', '+5', '5.', '.5', ' 5', 'Infinity', '0x10', '٣'])('leaves %j as it is', (amount) => {
    expect(onWire(amount, 'EUR', 'en')).toEqual({
      currency: 'EUR',
      amountFormatted: amount,
      currencyFormatted: '€',
      valueFormatted: `${amount} €`.trim(),
    })
  })

  test('shows an amount that is longer than any number as it is, and never as infinity', () => {
    const amount = '9'.repeat(257)
    expect(formatMoney(amount, 'EUR', 'en').valueFormatted).toBe(`${amount} €`)
    expect(formatMoney('9'.repeat(256), 'EUR', 'en').amountFormatted).not.toContain('∞')
  })

  test('puts every digit on the wire, without zeros in front', () => {
    expect(JSON.stringify(formatMoney('0012345678901234567890.120', 'EUR', 'en'))).toContain('"amount":12345678901234567890.120,')
    expect(JSON.stringify(formatMoney('-00.50', 'EUR', 'en'))).toContain('"amount":-0.50,')
  })

  test('leaves out a number that published SDKs cannot read, and formats it all the same', () => {
    const money = formatMoney('1'.repeat(39), 'EUR', 'en')
    expect(money).not.toHaveProperty('amount')
    expect(money.amountFormatted.replaceAll(',', '')).toBe(`${'1'.repeat(39)}.00`)
  })

  test('never shows more money than is paid, and no digit that was not given', () => {
    const decimal = fc.tuple(fc.bigInt({ min: 0n, max: 10n ** 30n }), fc.stringMatching(/^\d{1,25}$/))
    fc.assert(
      fc.property(decimal, ([whole, fraction]) => {
        const { amountFormatted } = formatMoney(`${whole}.${fraction}`, 'EUR', 'en')
        const [shownWhole, shownFraction = ''] = amountFormatted.replaceAll(',', '').split('.')
        expect(shownWhole).toBe(`${whole}`)
        const cut = fraction.slice(0, 18).replace(/0+$/, '')
        expect(shownFraction).toBe(cut.padEnd(2, '0'))
      }),
    )
  })
})
