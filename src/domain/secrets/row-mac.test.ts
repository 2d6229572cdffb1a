// Tests the MAC of a row: every field and the order count, and only the MAC of this very row is accepted.
import { expect, test } from 'vitest'
import { importHmacKey } from '../../crypto/hash.ts'
import { authenticateRow, isRowAuthentic } from './row-mac.ts'

const key = importHmacKey(new Uint8Array(32).fill(1))
const row = { table: 'credential', fields: ['alice', 'integration', null] }
const mac = authenticateRow(key, row)

test('a row is authentic with its own MAC under its own key alone', () => {
  expect(isRowAuthentic(key, row, mac)).toBe(true)
  expect(isRowAuthentic(importHmacKey(new Uint8Array(32).fill(2)), row, mac)).toBe(false)
  expect(isRowAuthentic(key, row, null)).toBe(false)
  expect(isRowAuthentic(key, row, mac.subarray(0, 31))).toBe(false)
  expect(isRowAuthentic(key, row, new Uint8Array(32))).toBe(false)
})

test.each([
  ['another table', { table: 'other', fields: row.fields }],
  ['another value', { ...row, fields: ['alice', 'admin', null] }],
  ['another row', { ...row, fields: ['bob', 'integration', null] }],
  ['null as an empty text', { ...row, fields: ['alice', 'integration', ''] }],
  ['a field less', { ...row, fields: ['alice', 'integration'] }],
  ['a character moved to the next field', { ...row, fields: ['alic', 'eintegration', null] }],
  ['fields in another order', { ...row, fields: ['integration', 'alice', null] }],
])('is not authentic with %s', (_, changed) => {
  expect(isRowAuthentic(key, changed, mac)).toBe(false)
})
