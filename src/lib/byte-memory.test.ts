// What lies beside the heap: that it comes back as it was set, how much of it, and that what is forgotten is gone.
import { randomInt } from 'node:crypto'
import { expect, test } from 'vitest'
import { createByteMemory } from './byte-memory.ts'

const limits = { max: 10, blocks: 6, blockBytes: 4 }

test.each([0, 1, 4, 5, 24])('%i bytes come back as a copy of what was set', (length) => {
  const memory = createByteMemory(limits)
  const bytes = Buffer.from(Array.from({ length }, (_, i) => i + 1))
  const expected = Buffer.from(bytes)
  memory.set('one', bytes)
  bytes.fill(0)
  const got = memory.get('one')
  expect(got).toEqual(expected)
  got?.fill(0)
  expect(memory.get('one')).toEqual(expected)
})

test('the entry least in use is forgotten when there are too many', () => {
  const memory = createByteMemory({ ...limits, max: 2 })
  memory.set('one', Buffer.from('1'))
  memory.set('two', Buffer.from('2'))
  memory.get('one')
  memory.set('three', Buffer.from('3'))
  expect(['one', 'two', 'three'].map((key) => memory.get(key)?.toString())).toEqual(['1', undefined, '3'])
  expect(memory.size()).toBe(2)
})

test('as many are forgotten as another one needs blocks; one that needs more than there are is not remembered, and its older value is gone', () => {
  const memory = createByteMemory(limits)
  for (const key of ['one', 'two', 'three']) memory.set(key, Buffer.alloc(8, key))
  memory.set('four', Buffer.alloc(13, 'four'))
  expect(['one', 'two', 'three', 'four'].map((key) => memory.get(key)?.length)).toEqual([undefined, undefined, 8, 13])
  memory.set('three', Buffer.alloc(25))
  expect([memory.get('three'), memory.get('four')?.length, memory.size()]).toEqual([undefined, 13, 1])
})

test('a value that grows or shrinks keeps no byte of the one before', () => {
  const memory = createByteMemory(limits)
  for (const text of ['123456789', '1', '12345678901234567', '1234', '12345']) {
    memory.set('one', Buffer.from(text))
    expect(memory.get('one')?.toString()).toBe(text)
  }
})

test('entries of any lengths never get the bytes of another one', () => {
  const memory = createByteMemory({ max: 300, blocks: 3_000, blockBytes: 16 })
  const last = new Map<string, Buffer>()
  let found = 0
  for (let i = 0; i < 20_000; i += 1) {
    const key = String(randomInt(600))
    const known = memory.get(key)
    if (known !== undefined) {
      found += 1
      expect(known.equals(last.get(key) ?? Buffer.alloc(0))).toBe(true)
    }
    const value = Buffer.alloc(randomInt(1, 400), `${key} at ${i} `)
    last.set(key, value)
    memory.set(key, value)
  }
  expect(found).toBeGreaterThan(1_000)
  expect(memory.size()).toBeLessThanOrEqual(300)
})

test('what is forgotten is overwritten', () => {
  const made: Buffer[] = []
  const memory = createByteMemory(limits, (length) => {
    const chunk = Buffer.alloc(length)
    made.push(chunk)
    return chunk
  })
  const holds = (text: string) => made.some((chunk) => chunk.includes(text))
  memory.set('one', Buffer.from('aaaabbbb'))
  expect(holds('aaaabbbb')).toBe(true)
  memory.set('one', Buffer.from('cc'))
  expect([holds('a'), holds('b'), holds('cc')]).toEqual([false, false, true])
  memory.set('two', Buffer.alloc(24, 'd'))
  expect([holds('cc'), memory.get('one')]).toEqual([false, undefined])
  memory.set('two', Buffer.alloc(21, 'e'))
  expect(holds('d')).toBe(false)
})
