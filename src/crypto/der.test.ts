// Tests that only DER is accepted, and that other forms of BER are refused (ITU-T X.690).
import { expect, test } from 'vitest'
import { readBitString, readDerInside, readDerValues } from './certificate-request.ts'

const hex = (text: string): Uint8Array => Buffer.from(text, 'hex')

test.each([
  ['', []],
  ['0500', ['05:']],
  ['020101040201ff', ['02:01', '04:01ff']],
  [`048180${'aa'.repeat(128)}`, [`04:${'aa'.repeat(128)}`]],
  [`04820100${'bb'.repeat(256)}`, [`04:${'bb'.repeat(256)}`]],
  ['30030101ff', ['30:0101ff']],
])('%s', (text, expected) => {
  const values = readDerValues(hex(text))
  expect(values?.map(({ tag, content }) => `${hexOf([tag])}:${hexOf(content)}`)).toEqual(expected)
  expect(hexOf(values?.flatMap(({ whole }) => [...whole]) ?? [])).toBe(text)
})

const hexOf = (bytes: Iterable<number>): string => Buffer.from([...bytes]).toString('hex')

test.each([
  ['a tag alone', '30'],
  ['a value that is cut', '0402aa'],
  ['a value that is cut behind a good one', '05000402aa'],
  ['a length that is not known', '30800101000000'],
  ['a length in two bytes that has room in one', '048101aa'],
  ['a length with a zero in front', `04820080${'aa'.repeat(128)}`],
  ['a length in five bytes', '04850100000001'],
  ['a length that is cut', '0482ff'],
  ['a length that is missing', '0484'],
  ['a length beyond all bytes', '0484ffffffff'],
  ['a tag of several bytes', '1f810100'],
])('%s is no DER', (_, text) => {
  expect(readDerValues(hex(text))).toBeUndefined()
})

test('what lies inside of a value of one tag', () => {
  expect(readDerInside(hex('300402010105'), 0x30)).toBeUndefined()
  expect(readDerInside(hex('30050201010500'), 0x30)).toHaveLength(2)
  expect(readDerInside(hex('30050201010500'), 0x31)).toBeUndefined()
  expect(readDerInside(hex('30000500'), 0x30)).toBeUndefined()
  expect(readDerInside(hex(''), 0x30)).toBeUndefined()
})

test('a bit string has whole bytes', () => {
  const read = (text: string) =>
    readBitString((readDerValues(hex(text)) ?? [])[0] ?? { tag: 0, content: hex(''), whole: hex('') })
  expect(read('030200aa')).toEqual(hex('aa'))
  expect(read('030100')).toEqual(hex(''))
  expect(read('030201aa')).toBeUndefined()
  expect(read('0300')).toBeUndefined()
  expect(read('040200aa')).toBeUndefined()
})
