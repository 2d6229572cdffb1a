// `pawl phone` shows a scanned operation with its data split as phones split it (cloud §5).
import { expect, test } from 'vitest'
import { drawOperation, drawScanned } from '../../cli/phone/screen.ts'
import { widthOf } from '../../cli/output.ts'
import { renderOperationForm } from '../../src/domain/operation/form.ts'
import { ATTRIBUTE_SLOTS } from '../../src/domain/template/attributes.ts'

/** The lines between title and message and the lower edge, without the frame. */
const shownOf = (data: string): string[] =>
  drawScanned({ operationId: 'o', title: 'Title', message: 'Message', data, flags: '', totp: undefined, nonce: '' })
    .split('\n')
    .slice(3, -2)
    .map((line) => line.replace(/^ {2}\| (.*?) *\|$/, '$1').replaceAll(/ {2,}/g, ' '))

test.each<[string, string[]]>([
  ['A2', []],
  ['A1*A250.00EUR*ICZ6508000000192000145399', ['Amount 250.00 EUR', 'To account CZ6508000000192000145399']],
  [
    'A1*A1CZK*ICZ65,AGRICZPP*R/VS1*D20180425',
    ['Amount 1 CZK', 'To account CZ65, BIC AGRICZPP', 'Reference /VS1', 'Date 2018-04-25'],
  ],
  ['A3*Q12-34/0800**NTwo\\nlines, \\*, \\\\*Tend', ['To account 12-34/0800', 'Note Two lines, *, \\', 'Text end']],
  ['A99*Xbank', ['X bank']],
  ['A1*N\\\\*T\u202e', ['Note \\', 'Text \\u{202e}']],
  ['A1*A', ['Amount']],
  ['B1*A1EUR', ['B1*A1EUR']],
  ['A100*A1EUR', ['A100*A1EUR']],
  ['', ['']],
])('%j', (data, lines) => {
  expect(shownOf(data)).toEqual(lines)
})

/** The lines of an operation with a row of each kind, whose parameters are the names of their slots. */
function drawEveryKind(label: string): readonly string[] {
  const kinds = Object.entries(ATTRIBUTE_SLOTS).map(([type, { required, optional }]) => {
    const slots = [...required, ...optional]
    return { id: type, type, text: label, params: Object.fromEntries(slots.map((slot) => [slot, slot])) }
  })
  const names = kinds.flatMap(({ params }) => Object.keys(params))
  const values: Record<string, string> = {
    ...Object.fromEntries(names.map((name) => [name, name])),
    amount: '10',
    currency: 'EUR',
    sourceAmount: '1',
    sourceCurrency: 'EUR',
    targetAmount: '25',
    targetCurrency: 'CZK',
  }
  const { formData } = renderOperationForm({
    texts: { title: 'Title', message: 'Message', attributes: kinds },
    locale: 'en',
    parameters: values,
    riskFlags: '',
    hasProximityCheck: false,
  })
  return drawOperation({ id: 'o', data: 'A1', formData }).split('\n').slice(3, -2)
}

test('an operation is shown with what every kind of row says', () => {
  const lines = drawEveryKind('Label').map((line) => line.replace(/^ {2}\| Label *(.*?) *\|$/, '$1'))
  expect(lines).toEqual([
    '€10.00',
    '€1.00 · CZK\u00a025.00',
    'value',
    'note',
    '',
    'title · message',
    'thumbnailUrl',
    'name · description',
  ])
})

test('a label of any length ends before what it is the label of', () => {
  for (const label of ['Beneficiary name', 'Name of the beneficiary', '受取人の名前を確認']) {
    expect(drawEveryKind(label)[0]).toContain(`${label} `)
  }
})

test('a frame is as wide as what it holds, also around signs that take two columns, and marks that take none', () => {
  for (const title of ['Přenos', 'Prenos\u030c', '東京三菱銀行', '🦊 fox 👍🏽', '한국어', 'a\nb', '\u202eab']) {
    const formData = { title, message: 'Message', attributes: [{ type: 'KEY_VALUE', label: '名前', value: '花子' }] }
    const widths = drawOperation({ id: 'o', data: 'A1', formData }).trimEnd().split('\n').map(widthOf)
    expect([title, new Set(widths).size]).toEqual([title, 1])
  }
  expect([widthOf('東京'), widthOf('👍🏽'), widthOf('r\u030c'), widthOf('abc')]).toEqual([4, 2, 1, 3])
})
