// Tests that parts with sizes are read back as they were written, and that nothing is read behind the last byte.
import { expect, test } from 'vitest'
import { concatWithSizes, splitBySizes } from './bytes.ts'

test('parts are read back; an absent one is empty', () => {
  const joined = Buffer.from(concatWithSizes(Buffer.from('first'), undefined, Buffer.alloc(300, 'x'), Buffer.alloc(0)))
  expect(splitBySizes(joined).map(String)).toEqual(['first', '', 'x'.repeat(300), ''])
  expect(splitBySizes(Buffer.alloc(0))).toEqual([])
})

test('bytes that end within a size or a part are refused', () => {
  const joined = Buffer.from(concatWithSizes(Buffer.from('first'), Buffer.from('second')))
  for (const length of [1, 3, 4, 8, 12, joined.length - 1])
    expect(() => splitBySizes(joined.subarray(0, length))).toThrow(RangeError)
})
