// pawl import powerauth takes templates with the texts of the enrollment server: what is wrong in a text or a row of the form is mended or left
// out by name, and the template is kept.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { random } from '../../phone/v3/crypto.ts'
import { startTestServer, type TestServer } from '../helpers/app.ts'
import { type Bank, createBank } from '../helpers/bank.ts'
import { importInto, openOrigin, type Origin } from '../helpers/powerauth-import.ts'
import { createReferenceDatabase, type ReferenceDatabase } from '../helpers/powerauth-server.ts'
import { expectOk } from '../helpers/world.ts'

let origin: Origin
let reference: ReferenceDatabase
let server: TestServer
let bank: Bank
let imported: Awaited<ReturnType<typeof importInto>>
let number = 0
let templates = 0

type Row = Readonly<Record<string, unknown>>

/** A template of this name and type, with texts in these languages. */
async function add(name: string, texts: Readonly<Record<string, Row>>, row: Row = {}): Promise<void> {
  templates += 1
  await reference.insert('pa_operation_template', {
    id: ++number,
    template_name: name,
    operation_type: name,
    data_template: 'A2',
    signature_type: 'possession_knowledge,possession_biometry',
    max_failure_count: 5,
    expiration: 300,
    ...row,
  })
  for (const [language, text] of Object.entries(texts))
    await reference.insert('es_operation_template', {
      id: ++number,
      placeholder: name,
      language,
      title: `Title of ${name}`,
      message: `Message of ${name}`,
      ...text,
    })
}

const rowOf = (type: string, params: Row, more: Row = {}): Row => ({
  id: `operation.${type}`,
  type,
  text: `Text of ${type}`,
  params,
  ...more,
})
const form = (...rows: readonly unknown[]): Row => ({ attributes: JSON.stringify(rows) })
const kept = rowOf('KEY_VALUE', { value: 'kept' })

/** What the documentation of the enrollment server shows of each type of row: its slots, with names of parameters of their own. */
const DOCUMENTED: readonly Row[] = [
  rowOf('AMOUNT', { amount: 'p1', currency: 'p2' }),
  rowOf('AMOUNT_CONVERSION', {
    dynamic: 'p3',
    sourceAmount: 'p4',
    sourceCurrency: 'p5',
    targetAmount: 'p6',
    targetCurrency: 'p7',
  }),
  rowOf('IMAGE', { thumbnailUrl: 'p8', originalUrl: 'p9' }),
  rowOf('KEY_VALUE', { value: 'p10' }),
  rowOf('NOTE', { note: 'p11' }),
  { id: 'operation.heading', type: 'HEADING', text: 'Heading' },
  rowOf('ALERT', { type: 'p12', title: 'p13', message: 'p14' }),
  rowOf('PARTY_INFO', { logoUrl: 'p15', name: 'p16', description: 'p17', websiteUrl: 'p18' }),
]

/** Screens as it shows them. */
const SCREENS: Readonly<Record<string, Row>> = {
  en: {
    flipButtons: true,
    postApprovalScreen: {
      type: 'REVIEW',
      heading: 'Done',
      message: 'Approved',
      payload: { attributes: [{ type: 'NOTE', id: '1', label: 'A label', note: '${note}' }] },
    },
  },
  cs: {
    blockApprovalOnCall: false,
    postApprovalScreen: {
      type: 'MERCHANT_REDIRECT',
      heading: 'Hotovo',
      message: 'Zpět do obchodu',
      payload: { redirectText: 'Do obchodu', redirectUrl: 'https://shop.example', countdown: 5 },
    },
  },
  de: {
    preApprovalScreen: {
      type: 'WARNING',
      heading: 'Achtung',
      message: 'Sind Sie sicher?',
      items: ['Eins'],
      approvalType: 'SLIDER',
    },
    postApprovalScreen: { type: 'GENERIC', heading: 'Fertig', message: 'Danke', payload: { own: 'member' } },
  },
}

const BAD_ROWS: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['a text', 'KEY_VALUE'],
  ['a list', [kept]],
  ['an amount without a currency', rowOf('AMOUNT', { amount: 'a' })],
  ['an unknown type without a value', rowOf('PHONE_NUMBER', { number: 'n' })],
  ['no params', { id: 'x', type: 'NOTE', text: 'Note' }],
  ['a parameter without a name', rowOf('NOTE', { note: '' })],
  ['a label that turns its direction', rowOf('NOTE', { note: 'n' }, { text: 'abc\u202Edef' })],
  ['a label of 300 characters', rowOf('NOTE', { note: 'n' }, { text: 'x'.repeat(300) })],
  ['an id with a control character', rowOf('NOTE', { note: 'n' }, { id: 'a\u0000b' })],
  ['an alert without a message', rowOf('ALERT', { type: 't' })],
]

const MENDED_ROWS: readonly (readonly [string, unknown, Row])[] = [
  ['an unknown type', rowOf('PHONE_NUMBER', { value: 'n' }), { type: 'KEY_VALUE', params: { value: 'n' } }],
  ['a type in lower case', rowOf('note', { value: 'n' }), { type: 'KEY_VALUE', params: { value: 'n' } }],
  ['a type of a prototype', rowOf('constructor', { value: 'n' }), { type: 'KEY_VALUE', params: { value: 'n' } }],
  ['no type', { id: 'x', text: 'x', params: { value: 'n' } }, { type: 'KEY_VALUE', params: { value: 'n' } }],
  ['a slot that is not known', rowOf('NOTE', { note: 'n', colour: 'c' }), { type: 'NOTE', params: { note: 'n' } }],
  ['no id', { type: 'NOTE', text: 'x', params: { note: 'n' } }, { id: 'attribute.1', type: 'NOTE' }],
]

beforeAll(async () => {
  origin = await openOrigin()
  reference = await createReferenceDatabase(origin.database.db, random(16))
  await add('documented', { en: form(...DOCUMENTED) })
  const screens = Object.entries(SCREENS).map(([language, ui]) => [language, { ui: JSON.stringify(ui) }])
  await add('screens', Object.fromEntries(screens) as Record<string, Row>)
  const results = { success: 'Done, ${name}', failure: 'Failed', reject: 'Rejected' }
  await add('results', {
    en: { result_texts: JSON.stringify(results) },
    cs: { result_texts: JSON.stringify({ ...results, success: null, other: 'x', reject: 5, failure: 'Chyba\u0007' }) },
    de: { result_texts: 'no JSON' },
    fr: { result_texts: '[]' },
    it: { result_texts: '' },
  })
  for (const [name, row] of BAD_ROWS) await add(`bad: ${name}`, { en: form(kept, row, kept) })
  for (const [name, row] of MENDED_ROWS) await add(`mended: ${name}`, { en: form(kept, row, kept) })
  await add('form that is no JSON', { en: { attributes: '[{' }, cs: { attributes: '{"id":1}' } })
  await add('long form', { en: form(...Array.from({ length: 130 }, () => kept)) })
  await add('languages', { 'en-US': {}, en_GB: {}, CS: {}, deu: {}, x: {}, de: { title: 'Titel' }, 'de-AT': { title: 'Titl' } })
  await add('texts', {
    en: { title: 'Amount ${amount:-0}', message: 'x'.repeat(5_000) },
    cs: { title: ' ', message: 'a\u202Eb\u0001' },
    de: { title: 'Broken ${', message: '${}' },
  })
  const screen = { type: 'REVIEW', heading: 'Done', message: 'Approved', payload: { attributes: [] } }
  await add('ui', {
    en: { ui: JSON.stringify({ flipButtons: true, postApprovalScreen: { type: 'NEW_TYPE', heading: 5 } }) },
    cs: { ui: JSON.stringify({ blockApprovalOnCall: true, postApprovalScreen: screen }) },
    de: { ui: '{"flipButtons": ${flip}}' },
    fr: { ui: '[1]' },
  })
  await add('numbers', { en: {} }, { max_failure_count: 0, expiration: '9999999999', risk_flags: 'XQXF' })
  await add('factors', { en: {} }, { signature_type: 'possession_knowledge, KNOWLEDGE' })
  await add('all factors', { en: {} }, { signature_type: 'possession_knowledge_biometry' })
  await add('free text', { en: {} }, { data_template: 'Pay ${amount}' })
  await add('', { en: {} })
  await reference.insert('es_operation_template', {
    id: ++number,
    placeholder: 'nobody',
    language: 'en',
    title: 't',
    message: 'm',
  })
  server = await startTestServer()
  bank = createBank(server.url, `${server.admin.user}:${server.admin.password}`)
  imported = await importInto({ from: origin.database, into: server, masterDbKey: undefined })
})
afterAll(async () => {
  await server.close()
  await origin.database.close()
  await origin.drop()
})

interface Shown {
  readonly riskFlags: string
  readonly texts: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}
const read = async (name: string): Promise<Shown> =>
  expectOk(await bank.call('GET', `/admin/templates/${encodeURIComponent(name)}`)).json as Shown

test('only what a phone would sign, and a name, leave a template out', () => {
  expect(imported.told.flatMap((row) => ('reason' in row ? [row.id] : [])).toSorted()).toEqual(['', 'all factors', 'free text'])
  expect(imported.tallies.template).toEqual({ found: templates, imported: templates - 3, alreadyThere: 0, leftOut: 3 })
  expect(imported.reasonOf('free text')).toMatch('dataTemplate')
  expect(imported.reasonOf('all factors')).toMatch('signatureType')
  expect(imported.mendsOf('nobody')).toEqual(['texts that belong to no template are left out'])
})

test('every row that the reference documents is taken as it is', async () => {
  expect(imported.mendsOf('documented')).toEqual([])
  const { en } = (await read('documented')).texts
  expect(en?.['attributes']).toMatchObject(
    DOCUMENTED.map(({ type, params }) => ({
      type,
      ...(type === 'ALERT' ? { params: { alertType: 'p12' } } : params ? { params } : {}),
    })),
  )
})

test('so is every screen', async () => {
  expect(imported.mendsOf('screens')).toEqual([])
  const { texts } = await read('screens')
  for (const [language, ui] of Object.entries(SCREENS)) expect(texts[language]?.['ui']).toEqual(ui)
})

test('texts of results', async () => {
  const { texts } = await read('results')
  expect(texts['en']?.['resultTexts']).toEqual({ success: 'Done, ${name}', failure: 'Failed', reject: 'Rejected' })
  expect(texts['cs']?.['resultTexts']).toEqual({ failure: 'Chyba' })
  for (const language of ['de', 'fr', 'it']) expect(texts[language]?.['resultTexts']).toBeUndefined()
  expect(imported.mendsOf('results')).toHaveLength(4)
})

describe('a row of the form', () => {
  test.each(BAD_ROWS)('that is %s is left out, those beside it stay', async (name) => {
    const { en } = (await read(`bad: ${name}`)).texts
    expect(en?.['attributes']).toMatchObject([{ params: { value: 'kept' } }, { params: { value: 'kept' } }])
    expect(imported.mendsOf(`bad: ${name}`)).toContainEqual(
      expect.stringMatching(/^taken without a row of its form: texts\.en\.attributes\.1/),
    )
  })

  test.each(MENDED_ROWS)('of %s is mended', async (name, _row, expected) => {
    const { en } = (await read(`mended: ${name}`)).texts
    expect(en?.['attributes']).toMatchObject([kept, expected, kept])
    expect(imported.mendsOf(`mended: ${name}`)).not.toEqual([])
  })

  test('a form that is none, or longer than a phone shows', async () => {
    const { texts } = await read('form that is no JSON')
    expect([texts['en']?.['attributes'], texts['cs']?.['attributes']]).toEqual([[], []])
    expect(imported.mendsOf('form that is no JSON')).toHaveLength(2)
    expect((await read('long form')).texts['en']?.['attributes']).toHaveLength(100)
  })
})

test('languages are two letters; that of a region stands in where there is no plain one', async () => {
  const { texts } = await read('languages')
  expect(Object.keys(texts).toSorted()).toEqual(['cs', 'de', 'en'])
  expect(texts['de']).toMatchObject({ title: 'Titel' })
  expect(imported.mendsOf('languages')).toHaveLength(4)
})

test('title and message', async () => {
  const { texts } = await read('texts')
  expect(texts['en']).toMatchObject({ title: 'Amount ${amount}', message: `${'x'.repeat(4095)}…` })
  expect(texts['cs']).toMatchObject({ title: 'texts', message: 'ab' })
  expect(texts['de']).toMatchObject({ title: 'texts', message: 'texts' })
})

test('screens of the ui', async () => {
  const { texts } = await read('ui')
  expect(texts['en']?.['ui']).toEqual({ flipButtons: true })
  expect(texts['cs']?.['ui']).toMatchObject({ blockApprovalOnCall: true, postApprovalScreen: { type: 'REVIEW' } })
  expect(texts['de']?.['ui'] ?? texts['fr']?.['ui']).toBeUndefined()
  expect(imported.mendsOf('ui')).toHaveLength(3)
})

test('numbers, letters and factors', async () => {
  expect(await read('numbers')).toMatchObject({ maxFailureCount: 5, expiration: 300, riskFlags: 'XF' })
  expect(imported.mendsOf('numbers')).toHaveLength(3)
  expect(await read('factors')).toMatchObject({ signatureType: ['possession_knowledge'] })
  expect(imported.mendsOf('factors')).toHaveLength(1)
})
