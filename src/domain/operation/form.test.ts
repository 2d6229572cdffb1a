// Tests the form of an operation as phones read it (mobile-token §3 to §6), and the texts of a QR code (cloud §6.5).
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type OperationFormInput, renderOperationForm, renderQrTexts } from './form.ts'
import { type AttributeTemplate, type LocalizedTexts, SHIPPED_TEMPLATES } from '../template/template.ts'

const texts = (more: Partial<LocalizedTexts> = {}): LocalizedTexts => ({ title: 'T', message: 'M', attributes: [], ...more })
const render = (input: Partial<OperationFormInput>) =>
  renderOperationForm({ texts: texts(), locale: 'en', parameters: {}, riskFlags: '', hasProximityCheck: false, ...input })
/** The attributes as JSON, which shows the order of their members. */
const attributesOf = (attributes: AttributeTemplate[], parameters: Record<string, string>, locale = 'en'): string[] =>
  render({ texts: texts({ attributes }), parameters, locale }).formData.attributes.map((attribute) => JSON.stringify(attribute))
const row = (type: string, params: Record<string, string>): AttributeTemplate => ({ id: 'i', type, text: 'L', params })

describe('formData', () => {
  test('of the shipped payment is that of the example', () => {
    const payment = SHIPPED_TEMPLATES.find(({ templateName }) => templateName === 'payment')
    const form = render({
      texts: payment?.texts['en'] ?? texts(),
      parameters: { amount: '10', currency: 'EUR', iban: 'DE89370400440532013000' },
    })
    expect(JSON.stringify(form)).toBe(
      '{"formData":{"title":"Payment","message":"Please confirm the payment","attributes":[' +
        '{"type":"AMOUNT","id":"operation.amount","label":"Amount","amount":10,"currency":"EUR",' +
        '"amountFormatted":"10.00","currencyFormatted":"€","valueFormatted":"€10.00"},' +
        '{"type":"KEY_VALUE","id":"operation.account","label":"To account","value":"DE89370400440532013000"}]},"missing":[],"leftOut":[]}',
    )
  })

  test('has its placeholders filled, and names those that are missing', () => {
    const filled = render({
      texts: texts({ title: '${a}', message: '${b}"${c}', resultTexts: { success: '${a}${d}' }, ui: { x: ['${e}'] } }),
      parameters: { a: 'A\n', b: '\\' },
    })
    expect(filled).toEqual({
      formData: { title: 'A\n', message: '\\"', attributes: [], resultTexts: { success: 'A\n' } },
      ui: { x: [''] },
      missing: ['c', 'd', 'e'],
      leftOut: [],
    })
  })

  test.each<[AttributeTemplate, Record<string, string>, string]>([
    [row('KEY_VALUE', { value: 'v' }), { v: 'x' }, '{"type":"KEY_VALUE","id":"i","label":"L","value":"x"}'],
    [row('KEY_VALUE', { value: 'v' }), { v: '' }, '{"type":"KEY_VALUE","id":"i","label":"L","value":""}'],
    [row('NOTE', { note: 'n' }), { n: 'x' }, '{"type":"NOTE","id":"i","label":"L","note":"x"}'],
    [row('HEADING', {}), {}, '{"type":"HEADING","id":"i","label":"L"}'],
    [row('HEADING', { level: 'l' }), { l: '2' }, '{"type":"HEADING","id":"i","label":"L","level":2}'],
    [row('HEADING', { level: 'l' }), { l: 'two' }, '{"type":"HEADING","id":"i","label":"L"}'],
    [
      row('ALERT', { alertType: 'a', message: 'm' }),
      { a: 'WARNING', m: 'x' },
      '{"type":"ALERT","id":"i","label":"L","alertType":"WARNING","message":"x"}',
    ],
    [
      row('ALERT', { alertType: 'a', message: 'm', title: 't' }),
      { a: 'LOUD', m: 'x', t: 'y' },
      '{"type":"ALERT","id":"i","label":"L","alertType":"INFO","title":"y","message":"x"}',
    ],
    ...(
      [
        ['warning', 'WARNING'],
        ['Error', 'ERROR'],
        [' success ', 'SUCCESS'],
        ['ERRORS', 'INFO'],
        ['', 'INFO'],
      ] as const
    ).map(([given, shown]): [AttributeTemplate, Record<string, string>, string] => [
      row('ALERT', { alertType: 'a', message: 'm' }),
      { a: given, m: 'x' },
      `{"type":"ALERT","id":"i","label":"L","alertType":"${shown}","message":"x"}`,
    ]),
    // The template does not name the parameter, or the operation does not have it.
    [row('ALERT', { message: 'm' }), { m: 'x' }, '{"type":"ALERT","id":"i","label":"L","alertType":"INFO","message":"x"}'],
    [
      row('ALERT', { alertType: 'constructor', title: 't', message: 'm' }),
      { m: 'x' },
      '{"type":"ALERT","id":"i","label":"L","alertType":"INFO","message":"x"}',
    ],
    [
      row('PARTY_INFO', { logoUrl: 'l', name: 'n' }),
      { n: '2' },
      '{"type":"PARTY_INFO","id":"i","label":"L","partyInfo":' +
        '{"logoUrl":"about:blank","name":"2","description":"","websiteUrl":"about:blank"}}',
    ],
    [
      row('IMAGE', { thumbnailUrl: 't', originalUrl: 'o' }),
      { t: 'https://a' },
      '{"type":"IMAGE","id":"i","label":"L","thumbnailUrl":"https://a"}',
    ],
    [
      row('PARTY_INFO', { logoUrl: 'l', name: 'n', description: 'd', websiteUrl: 'w' }),
      { l: 'https://a/b?c=%20', n: '2', d: '3', w: 'https://d' },
      '{"type":"PARTY_INFO","id":"i","label":"L",' +
        '"partyInfo":{"logoUrl":"https://a/b?c=%20","name":"2","description":"3","websiteUrl":"https://d"}}',
    ],
    // Android fails without the website, and iOS leaves out a row whose URL is not one.
    [
      row('PARTY_INFO', { logoUrl: 'l', name: 'n', description: 'd' }),
      { l: 'https://bücher.example/ä', n: '2', d: '3' },
      '{"type":"PARTY_INFO","id":"i","label":"L","partyInfo":' +
        '{"logoUrl":"https://xn--bcher-kva.example/%C3%A4","name":"2","description":"3","websiteUrl":"about:blank"}}',
    ],
    [
      row('PARTY_INFO', { logoUrl: 'l', name: 'n', description: 'd', websiteUrl: 'w' }),
      { l: '', n: '2', d: '3', w: 'no url' },
      '{"type":"PARTY_INFO","id":"i","label":"L","partyInfo":' +
        '{"logoUrl":"about:blank","name":"2","description":"3","websiteUrl":"about:blank"}}',
    ],
    [
      row('AMOUNT', { amount: 'a', currency: 'c' }),
      { a: 'much', c: 'EUR' },
      '{"type":"AMOUNT","id":"i","label":"L","currency":"EUR","amountFormatted":"much","currencyFormatted":"€","valueFormatted":"much €"}',
    ],
    [
      row('AMOUNT_CONVERSION', {
        dynamic: 'd',
        sourceAmount: 'sa',
        sourceCurrency: 'sc',
        targetAmount: 'ta',
        targetCurrency: 'tc',
      }),
      { d: 'true', sa: '1.26', sc: 'EUR', ta: '1710', tc: 'JPY' },
      '{"type":"AMOUNT_CONVERSION","id":"i","label":"L","dynamic":true,' +
        '"sourceAmount":1.26,"sourceCurrency":"EUR","sourceAmountFormatted":"1.26","sourceCurrencyFormatted":"€","sourceValueFormatted":"€1.26",' +
        '"targetAmount":1710,"targetCurrency":"JPY","targetAmountFormatted":"1,710","targetCurrencyFormatted":"¥","targetValueFormatted":"¥1,710"}',
    ],
    ...(
      [
        [{ sourceAmount: 'a', sourceCurrency: 'c', targetAmount: 'a', targetCurrency: 'c' }, {}, false],
        [{ dynamic: 'd', sourceAmount: 'a', sourceCurrency: 'c', targetAmount: 'a', targetCurrency: 'c' }, {}, false],
        [{ dynamic: 'd', sourceAmount: 'a', sourceCurrency: 'c', targetAmount: 'a', targetCurrency: 'c' }, { d: 'TRUE ' }, true],
        [{ dynamic: 'd', sourceAmount: 'a', sourceCurrency: 'c', targetAmount: 'a', targetCurrency: 'c' }, { d: '1' }, false],
      ] as const
    ).map(([params, parameters, isDynamic]): [AttributeTemplate, Record<string, string>, string] => [
      row('AMOUNT_CONVERSION', params),
      { a: '1', c: 'XTS', ...parameters },
      `{"type":"AMOUNT_CONVERSION","id":"i","label":"L","dynamic":${isDynamic},` +
        '"sourceAmount":1,"sourceCurrency":"XTS","sourceAmountFormatted":"1.00","sourceCurrencyFormatted":"XTS","sourceValueFormatted":"XTS\u00a01.00",' +
        '"targetAmount":1,"targetCurrency":"XTS","targetAmountFormatted":"1.00","targetCurrencyFormatted":"XTS","targetValueFormatted":"XTS\u00a01.00"}',
    ]),
    [row('UNHEARD_OF', { value: 'v' }), { v: 'x' }, '{"type":"KEY_VALUE","id":"i","label":"L","value":"x"}'],
    [row('constructor', { value: 'v' }), { v: 'x' }, '{"type":"KEY_VALUE","id":"i","label":"L","value":"x"}'],
  ])('shows %j', (attribute, parameters, expected) => {
    expect(attributesOf([attribute], parameters)).toEqual([expected])
  })

  test.each([
    [row('KEY_VALUE', { value: 'v' }), {}],
    [row('KEY_VALUE', { value: 'constructor' }), {}],
    [row('AMOUNT', { amount: 'a', currency: 'c' }), { a: '1' }],
    [row('ALERT', { alertType: 'a', message: 'm' }), { a: 'INFO' }],
    [
      row('AMOUNT_CONVERSION', { sourceAmount: 'a', sourceCurrency: 'c', targetAmount: 'a', targetCurrency: 'd' }),
      { a: '1', c: 'EUR' },
    ],
    [row('PARTY_INFO', { logoUrl: 'a', description: 'a', name: 'b' }), { a: '1' }],
    [row('UNHEARD_OF', { text: 'v' }), { v: 'x' }],
  ])('leaves out %j without its parameter', (attribute, parameters) => {
    expect(
      attributesOf([attribute, row('NOTE', { note: 'n' })], { ...parameters, n: 'x' } as Record<string, string>),
    ).toHaveLength(1)
  })

  test('formats numbers for the phone, and takes texts of its own from the language of the texts', () => {
    const attributes = [row('AMOUNT', { amount: 'a', currency: 'c' })]
    const parameters = { a: '1234.5', c: 'EUR' }
    const form = render({ texts: texts({ attributes }), parameters, locale: 'en', numberLocale: 'de-DE', riskFlags: 'F' })
    expect(form.formData.attributes[0]).toMatchObject({ amountFormatted: '1.234,50', valueFormatted: '1.234,50\u00a0€' })
    expect(form.ui).toMatchObject({ preApprovalScreen: { heading: 'Could this be fraud?' } })
  })

  test('formats by the locale', () => {
    expect(attributesOf([row('AMOUNT', { amount: 'a', currency: 'c' })], { a: '1', c: 'EUR' }, 'de-AT')[0]).toContain('"1,00"')
  })

  test('is made of any parameters without failing', () => {
    const template = texts({
      title: '${a}',
      attributes: ['AMOUNT', 'NOTE', 'HEADING', 'ALERT', 'X'].map((type) =>
        row(type, { amount: 'a', currency: 'b', note: 'a', level: 'a', alertType: 'a', message: 'b', value: 'a' }),
      ),
    })
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (a, b) => {
        const form = JSON.parse(JSON.stringify(render({ texts: template, parameters: { a, b } })))
        expect(form.formData.attributes).toHaveLength(5)
      }),
      { numRuns: 30 },
    )
  })
})

describe('ui', () => {
  // A template that was stored before its screens were checked may have a placeholder there.
  test.each(['5', '5.5', 'x', '', undefined])('has no screen whose seconds a parameter should give: %j', (seconds) => {
    const payload = { redirectText: 'T', redirectUrl: 'https://a', countdown: '${seconds}' }
    const ui = { flipButtons: true, postApprovalScreen: { type: 'MERCHANT_REDIRECT', heading: 'H', message: 'M', payload } }
    const form = render({ texts: texts({ ui }), parameters: seconds === undefined ? {} : { seconds } })
    expect(form).toMatchObject({ ui: { flipButtons: true }, leftOut: ['postApprovalScreen'] })
    expect(form.ui).not.toHaveProperty('postApprovalScreen')
  })

  test('is absent when there is nothing to say', () => {
    expect(render({})).not.toHaveProperty('ui')
    expect(render({ texts: texts({ ui: {} }) })).not.toHaveProperty('ui')
  })

  test.each(['XCF', 'FCX'])('follows from the risk flags %s, whose order does not count', (riskFlags) => {
    expect(render({ riskFlags }).ui).toEqual({
      flipButtons: true,
      blockApprovalOnCall: true,
      preApprovalScreen: {
        type: 'WARNING',
        heading: expect.stringContaining('fraud'),
        message: expect.stringContaining('bank'),
        items: [],
        approvalType: 'SLIDER',
      },
    })
  })

  test('warns in the language of the texts, or in English', () => {
    const headingIn = (locale: string) => {
      const { ui } = render({ riskFlags: 'F', locale })
      return (ui?.['preApprovalScreen'] as { heading: string } | undefined)?.heading
    }
    expect(headingIn('cs-CZ')).toContain('podvod')
    expect(headingIn('DE')).toContain('Betrug')
    expect(headingIn('constructor')).toBe(headingIn('en'))
  })

  test('of the template comes before risk flags; values cannot leave their text', () => {
    const ui = {
      postApprovalScreen: {
        type: 'MERCHANT_REDIRECT',
        heading: '${a}',
        message: '',
        payload: { countdown: 5, redirectText: 'T', redirectUrl: '${a}' },
      },
    }
    const evil = '","flipButtons":true,"x":"'
    expect(render({ texts: texts({ ui }), riskFlags: 'XCF', parameters: { a: evil } }).ui).toEqual({
      postApprovalScreen: {
        type: 'MERCHANT_REDIRECT',
        heading: evil,
        message: '',
        payload: { countdown: 5, redirectText: 'T', redirectUrl: evil },
      },
    })
  })

  test('gives every screen before the approval a heading and a message', () => {
    const ui = {
      preApprovalScreen: { type: 'INFO' },
      preApprovalScreens: [
        { type: 'INFO', heading: 'H' },
        { type: 'WARNING', message: null },
      ],
    }
    expect(render({ texts: texts({ ui }) }).ui).toEqual({
      preApprovalScreen: { type: 'INFO', heading: '', message: '' },
      preApprovalScreens: [
        { type: 'INFO', heading: 'H', message: '' },
        { type: 'WARNING', heading: '', message: '' },
      ],
    })
  })

  test('leaves out what phones refuse, of templates older than the checks, and names it', () => {
    const good = { type: 'INFO', heading: 'H', message: 'M' }
    const bad = { ...good, approvalType: 'BUTTON' }
    const ui = { flipButtons: 'yes', preApprovalScreen: bad, preApprovalScreens: [bad, good], postApprovalScreen: good, x: [1] }
    const form = render({ texts: texts({ ui }) })
    expect(form.ui).toEqual({ x: [1], preApprovalScreens: [good] })
    expect(form.leftOut).toEqual(['flipButtons', 'preApprovalScreen', 'postApprovalScreen', 'preApprovalScreens.0'])
  })

  test('spells elements of a list as the SDK reads them', () => {
    const screenOf = (...types: string[]) => ({
      type: 'INFO',
      heading: 'H',
      message: 'M',
      elements: types.map((type) => ({ type })),
    })
    const ui = { preApprovalScreens: [screenOf('LIST_ITEM', 'ALERT', 'LISTITEM')] }
    expect(render({ texts: texts({ ui }) }).ui).toEqual({ preApprovalScreens: [screenOf('LIST_ITEM', 'ALERT', 'LIST_ITEM')] })
    expect(render({ texts: texts({ ui }), listElementType: 'LISTITEM' }).ui).toEqual({
      preApprovalScreens: [screenOf('LISTITEM', 'ALERT', 'LISTITEM')],
    })
  })

  test('puts the type of an attribute first, and gives a party its website', () => {
    const attribute = {
      label: 'L',
      id: 'i',
      partyInfo: { logoUrl: 'https://${a}', name: 'N', description: 'D' },
      type: 'PARTY_INFO',
    }
    const ui = { postApprovalScreen: { type: 'REVIEW', heading: 'H', message: 'M', payload: { attributes: [attribute] } } }
    expect(JSON.stringify(render({ texts: texts({ ui }), parameters: { a: 'b' } }).ui)).toContain(
      '{"type":"PARTY_INFO","label":"L","id":"i",' +
        '"partyInfo":{"logoUrl":"https://b","name":"N","description":"D","websiteUrl":"about:blank"}}',
    )
  })

  test('scans no QR code when there is none to scan', () => {
    const scan = { type: 'QR_SCAN', heading: 'H', message: 'M' }
    const info = { ...scan, type: 'INFO' }
    const withScan = texts({ ui: { flipButtons: true, preApprovalScreen: scan, preApprovalScreens: [scan, info] } })
    expect(render({ texts: withScan }).ui).toEqual({ flipButtons: true, preApprovalScreens: [info] })
    expect(render({ texts: withScan, hasProximityCheck: true }).ui).toEqual(withScan.ui)
    expect(render({ texts: texts({ ui: { preApprovalScreens: [scan] } }) })).not.toHaveProperty('ui')
  })
})

describe('renderQrTexts', () => {
  test('escapes backslash and line break and removes other control characters', () => {
    const qr = texts({ title: 'Pay\t${a}', message: 'one\r\ntwo \\ ${a}' })
    expect(renderQrTexts(qr, { a: 'x\n\\n' })).toEqual({ title: 'Payx\\n\\\\n', message: 'one\\ntwo \\\\ x\\n\\\\n' })
  })

  test('gives one line each, whatever the parameters are', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (a) => {
        const { title, message } = renderQrTexts(texts({ title: '${a}', message: '${b}' }), { a })
        // oxlint-disable-next-line no-control-regex
        expect(title + message).not.toMatch(/[\u0000-\u001f]/)
        expect(message).toBe('')
      }),
    )
  })
})
