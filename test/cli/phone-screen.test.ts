// `pawl phone` shows a scanned operation with its data split as phones split it (cloud §5).
import { expect, test } from 'vitest'
import { drawScanned } from '../../cli/phone/screen.ts'

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
