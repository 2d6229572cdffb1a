// What lies beside the heap: that it comes back as it was set, how much of it, and that what is forgotten is gone.
import { randomInt } from 'node:crypto'
import { expect, test } from 'vitest'
import { BLOCK_BYTES } from './byte-blocks.ts'
import { createByteMemory } from './byte-memory.ts'

const limits = { max: 10, bytes: 6 * BLOCK_BYTES }
/** The longest value under a key of three letters in so many blocks. */
const lengthIn = (blocks: number): number => blocks * BLOCK_BYTES - 3

test.each([0, 1, lengthIn(1), lengthIn(1) + 1, lengthIn(2), lengthIn(5) + 1, lengthIn(6)])(
  '%i bytes come back as a copy of what was set',
  (length) => {
    const memory = createByteMemory(limits)
    const bytes = Buffer.from(Array.from({ length }, (_, i) => i + 1))
    const expected = Buffer.from(bytes)
    memory.set('one', bytes)
    bytes.fill(0)
    const got = memory.get('one')
    expect(got).toEqual(expected)
    got?.fill(0)
    expect(memory.get('one')).toEqual(expected)
  },
)

test.each(['', 'a', 'ä', 'k'.repeat(BLOCK_BYTES), `${'k'.repeat(2 * BLOCK_BYTES)}x`])('the key %j is one of its own', (key) => {
  const memory = createByteMemory(limits)
  for (const other of [`${key}x`, `x${key}`]) memory.set(other, Buffer.from('another'))
  expect(memory.get(key)).toBeUndefined()
  memory.set(key, Buffer.from('this'))
  expect(memory.get(key)?.toString()).toBe('this')
})

test('the entry least in use is forgotten when there are too many', () => {
  const memory = createByteMemory({ ...limits, max: 2 })
  memory.set('one', Buffer.from('1'))
  memory.set('two', Buffer.from('2'))
  memory.get('one')
  memory.set('three', Buffer.from('3'))
  expect(['one', 'two', 'three'].map((key) => memory.get(key)?.toString())).toEqual(['1', undefined, '3'])
  memory.set('one', Buffer.from('4'))
  memory.set('two', Buffer.from('5'))
  expect(['one', 'two', 'three'].map((key) => memory.get(key)?.toString())).toEqual(['4', '5', undefined])
  expect(memory.size()).toBe(2)
})

test('as many are forgotten as another one needs blocks; one that needs more than there are is not remembered, and its older value is gone', () => {
  const memory = createByteMemory(limits)
  for (const key of ['one', 'two', 'six']) memory.set(key, Buffer.alloc(lengthIn(2), key))
  memory.set('ten', Buffer.alloc(lengthIn(3) + 1, 'ten'))
  expect(['one', 'two', 'six', 'ten'].map((key) => memory.get(key)?.length)).toEqual([
    undefined,
    undefined,
    lengthIn(2),
    lengthIn(3) + 1,
  ])
  memory.set('six', Buffer.alloc(lengthIn(6) + 1))
  expect([memory.get('six'), memory.get('ten')?.length, memory.size()]).toEqual([undefined, lengthIn(3) + 1, 1])
})

test('a value that grows or shrinks keeps no byte of the one before', () => {
  const memory = createByteMemory(limits)
  for (const length of [300, 1, 700, 400, 390, 510]) {
    memory.set('one', Buffer.alloc(length, `${length} `))
    expect(memory.get('one')).toEqual(Buffer.alloc(length, `${length} `))
  }
})

// As many as there may be, fewer than are written, and so few that the table behind them is always as full as it gets.
test.each([300, 16, 3, 1])('of entries of any lengths, %i at most, none ever gets the bytes of another one', (max) => {
  const memory = createByteMemory({ max, bytes: max * 3 * BLOCK_BYTES })
  const last = new Map<string, Buffer>()
  let found = 0
  let lost = 0
  const mixedUp: string[] = []
  for (let i = 0; i < 20_000; i += 1) {
    const key = `${randomInt(2 * max)}`.padEnd(randomInt(2) * 100, '.')
    const known = memory.get(key)
    if (known !== undefined) found += 1
    if (known?.equals(last.get(key) ?? Buffer.alloc(0)) === false) mixedUp.push(key)
    const value = Buffer.alloc(randomInt(1, 250), `${key} at ${i} `)
    last.set(key, value)
    memory.set(key, value)
    // The last one is there whatever was forgotten for it.
    if (memory.get(key)?.equals(value) !== true) lost += 1
  }
  expect({ mixedUp, lost }).toEqual({ mixedUp: [], lost: 0 })
  expect(found).toBeGreaterThan(1_000)
  expect(memory.size()).toBeLessThanOrEqual(max)
})

test('what is remembered is the same as in a list that is searched from the front', () => {
  const max = 50
  const memory = createByteMemory({ max, bytes: max * BLOCK_BYTES })
  let expected: [key: string, value: string][] = []
  for (let i = 0; i < 20_000; i += 1) {
    const key = String(randomInt(80))
    const known = expected.find(([other]) => other === key)
    if (randomInt(2) === 0) {
      expect(memory.get(key)?.toString()).toBe(known?.[1])
      if (known) expected = [known, ...expected.filter((one) => one !== known)]
    } else {
      memory.set(key, Buffer.from(String(i)))
      expected = [[key, String(i)] as [string, string], ...expected.filter((one) => one !== known)].slice(0, max)
    }
    expect(memory.size()).toBe(expected.length)
  }
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
  memory.set('two', Buffer.alloc(lengthIn(6), 'd'))
  expect([holds('cc'), memory.get('one')]).toEqual([false, undefined])
  memory.set('two', Buffer.alloc(lengthIn(5), 'x'))
  expect(holds('d')).toBe(false)
})
