// Tests templates: accepted and refused templates, the choice of a language, and placeholders (cloud §4).
import { describe, expect, test } from 'vitest'
import { parseTemplate, renderTemplate } from './parser.ts'
import { chooseTexts, fillText, hasSoundPlaceholders, SHIPPED_TEMPLATES, toTemplate, toTemplateContent } from './template.ts'

const en = { title: 'Payment', message: 'Pay ${amount} ${currency}?' }
const good = {
  templateName: 'payment',
  operationType: 'authorize_payment',
  dataTemplate: 'A1*A${amount}${currency}*I${iban}',
  signatureType: ['possession_knowledge', 'possession_biometry'],
  maxFailureCount: 5,
  expiration: 300,
  texts: { en },
}

const violationsOf = (json: unknown): Record<string, string> => {
  const parsed = parseTemplate(json)
  return 'violations' in parsed ? Object.fromEntries(parsed.violations.map(({ fieldName, hint }) => [fieldName, hint])) : {}
}
const withEn = (more: Record<string, unknown>) => ({ ...good, texts: { en: { ...en, ...more } } })
const attribute = (more: Record<string, unknown>) =>
  withEn({ attributes: [{ id: 'a', type: 'NOTE', text: 'Label', params: { note: 'note' }, ...more }] })

const screen = { type: 'INFO', heading: 'H', message: 'M' }
const note = { type: 'NOTE', id: 'i', label: 'L', note: 'N' }
const post = (type: string, payload: unknown, more: Record<string, unknown> = {}) => ({
  postApprovalScreen: { type, heading: 'H', message: 'M', payload, ...more },
})
const redirect = { redirectText: 'T', redirectUrl: 'https://a', countdown: 5 }
const review = (more: Record<string, unknown>) => post('REVIEW', { attributes: [{ ...note, ...more }] })

/** Screens that make an SDK drop the screen, the operation or the whole list. */
const badScreens = [
  ['flipButtons', { flipButtons: 'true' }],
  ['blockApprovalOnCall', { blockApprovalOnCall: 1 }],
  ['preApprovalScreen.type', { preApprovalScreen: { ...screen, type: '${type}' } }],
  ['preApprovalScreen.approvalType', { preApprovalScreen: { ...screen, approvalType: 'BUTTON' } }],
  ['preApprovalScreen.items', { preApprovalScreen: { ...screen, items: 'x' } }],
  ['preApprovalScreen.items.1', { preApprovalScreen: { ...screen, items: ['x', {}] } }],
  ['preApprovalScreen.items.0', { preApprovalScreen: { ...screen, items: [7] } }],
  ['preApprovalScreens.0.elements.0.type', { preApprovalScreens: [{ ...screen, elements: [{ type: 'TEXT' }] }] }],
  ['preApprovalScreens.0.elements.0.text', { preApprovalScreens: [{ ...screen, elements: [{ type: 'ALERT', text: {} }] }] }],
  ['preApprovalScreens.0.backButton', { preApprovalScreens: [{ ...screen, backButton: 'no' }] }],
  [
    'preApprovalScreens.0.controls.approve.counter',
    { preApprovalScreens: [{ ...screen, controls: { approve: { type: 'SLIDER', counter: 1.5 } } }] },
  ],
  ['postApprovalScreen', { postApprovalScreen: 'REVIEW' }],
  ['postApprovalScreen.type', post('OTHER', {})],
  ['postApprovalScreen.heading', post('GENERIC', {}, { heading: undefined })],
  ['postApprovalScreen.message', post('GENERIC', {}, { message: null })],
  ['postApprovalScreen.payload', post('GENERIC', undefined)],
  ['postApprovalScreen.payload', post('GENERIC', 'x')],
  ['postApprovalScreen.payload', post('MERCHANT_REDIRECT', undefined)],
  ['postApprovalScreen.payload.redirectUrl', post('MERCHANT_REDIRECT', { ...redirect, redirectUrl: undefined })],
  ['postApprovalScreen.payload.countdown', post('MERCHANT_REDIRECT', { ...redirect, countdown: undefined })],
  ['postApprovalScreen.payload.countdown', post('MERCHANT_REDIRECT', { ...redirect, countdown: 1.5 })],
  ['postApprovalScreen.payload.countdown', post('MERCHANT_REDIRECT', { ...redirect, countdown: '${seconds}' })],
  ['postApprovalScreen.payload.attributes', post('REVIEW', {})],
  ['postApprovalScreen.payload.attributes.0', post('REVIEW', { attributes: [[]] })],
  ['postApprovalScreen.payload.attributes.0.type', review({ type: 'TEXT' })],
  ['postApprovalScreen.payload.attributes.0.note', review({ note: undefined })],
  ['postApprovalScreen.payload.attributes.0.x', review({ x: [] })],
  ['postApprovalScreen.payload.attributes.0.x', review({ x: {} })],
  ['postApprovalScreen.payload.attributes.0.alertType', review({ type: 'ALERT', message: 'M', alertType: '${level}' })],
  [
    'postApprovalScreen.payload.attributes.0.partyInfo.logoUrl',
    review({ type: 'PARTY_INFO', partyInfo: { name: 'N', description: 'D' } }),
  ],
  ...['', 'slider', '${type}', 5, ['SLIDER']].map((approvalType) => [
    'preApprovalScreen.approvalType',
    { preApprovalScreen: { ...screen, approvalType } },
  ]),
  ...[[{}], [['x']], [null], [7]].map((items) => ['preApprovalScreen.items.0', { preApprovalScreen: { ...screen, items } }]),
  ...[{}, 7, ['H']].map((heading) => ['postApprovalScreen.heading', post('REVIEW', { attributes: [] }, { heading })]),
  ...[null, [], true].map((payload) => ['postApprovalScreen.payload', post('GENERIC', payload)]),
  // A countdown must be whole seconds, so it has no placeholder.
  ...['5', '', '${seconds}', '${seconds}0', 1.5, -1, 2 ** 31, null, [5], {}].map((countdown) => [
    'postApprovalScreen.payload.countdown',
    post('MERCHANT_REDIRECT', { ...redirect, countdown }),
  ]),
  ...[null, {}, 'x'].map((attributes) => ['postApprovalScreen.payload.attributes', post('REVIEW', { attributes })]),
  ...[[], [[]], ['N'], {}].map((value) => ['postApprovalScreen.payload.attributes.0.note', review({ note: value })]),
  ...[[], [{}], ['x']].map((value) => ['postApprovalScreen.payload.attributes.0.more', review({ more: value })]),
  [
    'postApprovalScreen.payload.attributes.0.partyInfo.more',
    review({ type: 'PARTY_INFO', partyInfo: { logoUrl: 'https://a', name: 'N', description: 'D', more: [1] } }),
  ],
  ...['yes', '', '${flip}', 0, [true]].flatMap((value) => [
    ['flipButtons', { flipButtons: value }],
    ['blockApprovalOnCall', { blockApprovalOnCall: value }],
  ]),
].map(([path, ui]) => [`texts.en.ui.${String(path)}`, withEn({ ui })] as [string, unknown])

describe('parseTemplate', () => {
  test('fills in what may be left out, and ignores what it does not know', () => {
    expect(parseTemplate({ ...good, riskFlags: null, activationFlag: null, more: 1 })).toEqual({
      template: {
        templateName: 'payment',
        operationType: 'authorize_payment',
        dataTemplate: 'A1*A${amount}${currency}*I${iban}',
        signatureTypes: ['possession_knowledge', 'possession_biometry'],
        maxFailureCount: 5,
        expirationSeconds: 300,
        riskFlags: '',
        isProximityCheckEnabled: false,
        activationFlag: null,
        texts: { en: { ...en, attributes: [] } },
      },
    })
  })

  test('takes every member, and gives it back as it was written', () => {
    const full = {
      ...good,
      riskFlags: 'XFC',
      proximityCheckEnabled: true,
      activationFlag: 'TRUSTED',
      texts: {
        cs: { title: 'Platba', message: 'Zaplatit?', attributes: [] },
        en: {
          ...en,
          attributes: [
            { id: 'operation.amount', type: 'AMOUNT', text: 'Amount', params: { amount: 'amount', currency: 'currency' } },
            { id: 'h', type: 'HEADING', text: 'Details', params: {} },
          ],
          ui: { flipButtons: true, preApprovalScreen: { type: 'INFO', heading: '${amount}', items: ['a'] } },
          resultTexts: { success: 'Paid', reject: 'Refused' },
          summary: 'Pay ${amount}',
        },
      },
    }
    const parsed = parseTemplate(full)
    expect('template' in parsed && renderTemplate(parsed.template)).toEqual(full)
    expect('template' in parsed && toTemplate(toTemplateContent(parsed.template))).toEqual(
      'template' in parsed && parsed.template,
    )
  })

  test.each([
    [
      { type: 'level', message: 'm' },
      { alertType: 'level', message: 'm' },
    ],
    [
      { message: 'm', title: 't', type: 'type' },
      { alertType: 'type', message: 'm', title: 't' },
    ],
    [{ type: null, message: 'm' }, { message: 'm' }],
    [
      { type: 'a', alertType: null, message: 'm' },
      { alertType: 'a', message: 'm' },
    ],
  ])('takes the name that the reference documents for the kind of an alert: %j', (params, read) => {
    const parsed = parseTemplate(attribute({ type: 'ALERT', params }))
    expect('template' in parsed && parsed.template.texts['en']?.attributes[0]?.params).toEqual(read)
  })

  test.each([
    ['ALERT', { message: 'm' }],
    ['AMOUNT_CONVERSION', { sourceAmount: 'a', sourceCurrency: 'b', targetAmount: 'c', targetCurrency: 'd' }],
    ['PARTY_INFO', { name: 'n' }],
  ])('takes a row %s without what a phone can do without', (type, params) => {
    expect(violationsOf(attribute({ type, params }))).toEqual({})
  })

  test('gives one text for one content: the order of languages and risk flags does not count', () => {
    const content = (json: unknown) => {
      const parsed = parseTemplate(json)
      return 'template' in parsed && toTemplateContent(parsed.template)
    }
    const cs = { title: 'Platba', message: 'Zaplatit?' }
    expect(content({ ...good, riskFlags: 'CX', texts: { en, cs } })).toEqual(
      content({ ...good, riskFlags: 'XC', texts: { cs, en } }),
    )
  })

  test.each(SHIPPED_TEMPLATES.map((template) => [template.templateName, template] as const))(
    'takes the shipped %s',
    (_, template) => {
      expect(parseTemplate(renderTemplate(template))).toEqual({ template })
    },
  )

  test.each([null, [], 'x', 7, undefined])('refuses %j as a template', (json) => {
    expect(violationsOf(json)).toHaveProperty('body')
  })

  test('names every member that is missing', () => {
    expect(Object.keys(violationsOf({}))).toEqual([
      'templateName',
      'operationType',
      'dataTemplate',
      'signatureType',
      'maxFailureCount',
      'expiration',
      'texts',
    ])
  })

  test.each<[string, unknown]>([
    ['templateName', ' '],
    ['templateName', 'x'.repeat(256)],
    ['templateName', 'a\nb'],
    ['templateName', '\ud800'],
    ['operationType', ''],
    ['operationType', 7],
    ['dataTemplate', 'B1'],
    ['dataTemplate', 'A0*R${'],
    ['dataTemplate', `A0*R${'x'.repeat(4096)}`],
    ['signatureType', 'possession'],
    ['signatureType', []],
    ['signatureType', ['possession', 'possession']],
    ['signatureType', ['possession_knowledge_biometry']],
    ['maxFailureCount', 0],
    ['maxFailureCount', 1.5],
    ['maxFailureCount', '5'],
    ['maxFailureCount', 2 ** 31],
    ['expiration', -1],
    ['expiration', null],
    ['riskFlags', 'XY'],
    ['riskFlags', 'XX'],
    ['riskFlags', 1],
    ['proximityCheckEnabled', 'true'],
    ['activationFlag', 'a,b'],
    ['activationFlag', ''],
    ['texts', {}],
    ['texts', []],
    ['texts', { EN: en }],
    ['texts', { eng: en }],
    ['texts', { __proto__x: en }],
  ])('refuses %s %j', (fieldName, value) => {
    expect(Object.keys(violationsOf({ ...good, [fieldName]: value }))).toEqual([fieldName])
  })

  test('refuses long risk flags at once', () => {
    // No letter comes again: a search for one that does takes seconds.
    const letters = Array.from({ length: 40_000 }, (_, i) => String.fromCharCode(0x3000 + i)).join('')
    const before = process.cpuUsage().user
    expect(Object.keys(violationsOf({ ...good, riskFlags: letters }))).toEqual(['riskFlags'])
    expect(process.cpuUsage().user - before).toBeLessThan(1_000_000)
  })

  test.each<[string, unknown]>([
    ['texts.en', { ...good, texts: { en: 7 } }],
    ['texts.cs.message', { ...good, texts: { en, cs: { title: 'Platba' } } }],
    ['texts.en.title', withEn({ title: ' ' })],
    ['texts.en.title', withEn({ title: 'Pay ${amount' })],
    ['texts.en.message', withEn({ message: 'a\u0007' })],
    ['texts.en.message', withEn({ message: 'x'.repeat(4097) })],
    ['texts.en.title', withEn({ title: 'a\u202e' })],
    ['texts.en.message', withEn({ message: '\u2066${amount}' })],
    ['texts.en.summary', withEn({ summary: '\u202a' })],
    ['texts.en.resultTexts.reject', withEn({ resultTexts: { reject: '\u2069' } })],
    ['texts.en.attributes.0.text', attribute({ text: '\u202d' })],
    ['texts.en.ui', withEn({ ui: { a: ['\u2067'] } })],
    ['texts.en.ui', withEn({ ui: { '\u2068': 1 } })],
    ['templateName', { ...good, templateName: 'pay\u202ement' }],
    ['operationType', { ...good, operationType: '\u202c' }],
    ['dataTemplate', { ...good, dataTemplate: 'A0*T\u202e${amount}' }],
    ['texts.en.summary', withEn({ summary: 5 })],
    ['texts.en.resultTexts', withEn({ resultTexts: 'ok' })],
    ['texts.en.resultTexts.success', withEn({ resultTexts: { success: '${}' } })],
    ['texts.en.attributes', withEn({ attributes: {} })],
    ['texts.en.attributes', withEn({ attributes: Array.from({ length: 101 }, () => ({})) })],
    ['texts.en.attributes.0', withEn({ attributes: ['x'] })],
    ['texts.en.attributes.0.type', attribute({ type: 'TEXT' })],
    ['texts.en.attributes.0.type', attribute({ type: 'constructor' })],
    ['texts.en.attributes.0.id', attribute({ id: '' })],
    ['texts.en.attributes.0.text', attribute({ text: undefined })],
    ['texts.en.attributes.0.params', attribute({ params: 'note' })],
    ['texts.en.attributes.0.params', attribute({ params: { note: 'a', type: 'b' } })],
    ['texts.en.attributes.0.params', attribute({ type: 'ALERT', params: { message: 'a', type: 'b', alertType: 'c' } })],
    ['texts.en.attributes.0.params.alertType', attribute({ type: 'ALERT', params: { message: 'a', type: 7 } })],
    ['texts.en.attributes.0.params.message', attribute({ type: 'ALERT', params: { type: 'a' } })],
    ['texts.en.attributes.0.params', attribute({ params: { note: 'a', value: 'b' } })],
    ['texts.en.attributes.0.params.note', attribute({ params: {} })],
    ['texts.en.attributes.0.params.note', attribute({ params: { note: '' } })],
    ['texts.en.ui', withEn({ ui: [] })],
    ['texts.en.ui', withEn({ ui: { a: ['${'] } })],
    ['texts.en.ui', withEn({ ui: { a: '\u0000' } })],
    ['texts.en.ui', withEn({ ui: { a: 'x'.repeat(65_536) } })],
    ['texts.en.ui', withEn({ ui: { a: JSON.parse('['.repeat(50) + ']'.repeat(50)) } })],
    ['texts.en.ui.preApprovalScreen.heading', withEn({ ui: { preApprovalScreen: { type: 'INFO', heading: 7 } } })],
    ['texts.en.ui.preApprovalScreen.type', withEn({ ui: { preApprovalScreen: {} } })],
    ...badScreens,
    ['texts.en.ui.preApprovalScreens', withEn({ ui: { preApprovalScreens: {} } })],
    ['texts.en.ui.preApprovalScreens.1', withEn({ ui: { preApprovalScreens: [{ type: 'INFO' }, 'x'] } })],
  ])('refuses %s in a bad place', (fieldName, json) => {
    expect(Object.keys(violationsOf(json))).toEqual([fieldName])
  })
})

describe('chooseTexts', () => {
  const text = (title: string) => ({ title, message: title, attributes: [] })
  const texts = { cs: text('cs'), en: text('en'), de: text('de') }

  test.each([
    [['cs'], 'cs', 'cs'],
    [['CS-cz', 'en'], 'CS-cz', 'cs'],
    [['fr', 'de-AT'], 'de-AT', 'de'],
    [['fr'], 'en', 'en'],
    [[], 'en', 'en'],
    [['constructor', '', '-'], 'en', 'en'],
  ])('for %j takes %s', (tags, locale, title) => {
    expect(chooseTexts(texts, tags)).toEqual({ locale, texts: text(title) })
  })

  test.each([
    ['he', 'iw-IL'],
    ['iw', 'he-IL'],
    ['id', 'in'],
    ['tl', 'fil-PH'],
    ['ro', 'mo'],
    ['sr', 'sh'],
  ])('takes those in %s for %s, which is another code of the language', (language, tag) => {
    expect(chooseTexts({ en: text('en'), [language]: text('own') }, [tag])).toEqual({ locale: tag, texts: text('own') })
  })

  test('takes those under the code that was asked for, when a language has texts under two', () => {
    const both = { he: text('he'), iw: text('iw') }
    expect(chooseTexts(both, ['he']).texts.title).toBe('he')
    expect(chooseTexts(both, ['iw']).texts.title).toBe('iw')
  })

  test('takes the alphabetically first without English', () => {
    expect(chooseTexts({ sk: text('sk'), de: text('de') }, ['fr'])).toEqual({ locale: 'de', texts: text('de') })
  })
})

describe('fillText', () => {
  test('replaces once, leaves out what is missing, and names it', () => {
    const parameters = { amount: '${currency}$&', currency: 'EUR' }
    expect(fillText('${amount} ${currency}|${a}${b}${a}|$x', parameters)).toEqual({
      text: '${currency}$& EUR||$x',
      missing: ['a', 'b'],
    })
  })

  test('takes nothing from the prototype', () => {
    expect(fillText('${constructor}', {})).toEqual({ text: '', missing: ['constructor'] })
  })

  test.each(['$', '{a}', '$ {a}', '${ä-b.c_1}', '$${a}{b}'])('%s has sound placeholders', (text) => {
    expect(hasSoundPlaceholders(text)).toBe(true)
  })

  test.each(['${', '${}', '${a', '${a b}', '${a${b}}', '${a:-b}'])('%s has not', (text) => {
    expect(hasSoundPlaceholders(text)).toBe(false)
  })
})
