// Tests Accept-Language in the forms of browsers and phones, and in malformed ones (RFC 9110 §12.5.4).
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseAcceptLanguage } from './language.ts'

describe('parseAcceptLanguage', () => {
  test.each<[string | undefined, string[]]>([
    [undefined, []],
    ['', []],
    ['en', ['en']],
    ['cs-CZ,cs;q=0.9,en;q=0.8', ['cs-CZ', 'cs', 'en']],
    ['en;q=0.5, cs;q=0.9 , de', ['de', 'cs', 'en']],
    ['en;q=0.8,cs;q=0.8', ['en', 'cs']],
    ['en;q=0,cs', ['cs']],
    ['en;q=0.000', []],
    ['*', []],
    ['de;q=0.1,*;q=0.5', ['de']],
    ['EN-gb', ['en-GB']],
    ['zh-hant-tw', ['zh-Hant-TW']],
    ['en-u-nu-arab', ['en']],
    ['en,EN,en;q=0.1', ['en']],
    ['iw', ['he']],
    ['en ; Q = 0.3, cs;q=0.4', ['cs', 'en']],
    ['i-klingon,x-private,english,e,cs', ['cs']],
    ['cs;q=2,de;q=-1,fr;q=x,it;q=0.1234,en;q=1.000', ['en']],
    ['cs;level=1, en', ['en']],
    ['en_US, cs', ['en-US', 'cs']],
    ['cs_CZ', ['cs-CZ']],
    ['zh_hans_TW;q=0.5, pt_BR', ['pt-BR', 'zh-Hans-TW']],
    ['sr_Latn-RS', ['sr-Latn-RS']],
    ['cs_CZ, cs-CZ', ['cs-CZ']],
    ['_cs, cs_, cs__CZ, en_u_nu_arab', ['en']],
    [',,;q=1,;,cs', ['cs']],
  ])('reads %j as %j', (header, tags) => {
    expect(parseAcceptLanguage(header)).toEqual(tags)
  })

  test('never throws, and gives only tags that number formats take', () => {
    const part = fc.constantFrom('en', 'cs-CZ', '-', ',', ';', 'q=', '0.5', '*', ' ', 'x-', '-u-nu-', 'é', 'abcdefgh', '1')
    const header = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(part, { maxLength: 30 }).map((parts) => parts.join('')),
    )
    fc.assert(
      fc.property(header, (text) => {
        for (const tag of parseAcceptLanguage(text)) expect(() => new Intl.NumberFormat([tag])).not.toThrow()
      }),
    )
  })

  test('looks at the first ranges of a header that is nothing but commas or tags', () => {
    expect(parseAcceptLanguage(`${'cs,'.repeat(5_000)}en`)).toEqual(['cs'])
    expect(parseAcceptLanguage(',;'.repeat(8_000))).toEqual([])
  })
})
