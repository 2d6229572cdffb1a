// Tests the memory beside the heap: values come back as they were set, the size is limited, and forgotten values are gone.
import { randomInt } from 'node:crypto'
import { expect, test } from 'vitest'
import { createByteMemory } from './memory.ts'

const limits = { max: 2, slotBytes: 100 }

test.each([0, 1, 99, 100, 101, 1_000])(
  '%i bytes come back as a copy of what was set, from a slot of 100 or beside it',
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

test.each(['', 'a', 'ä', '__proto__', 'k'.repeat(1_000)])('the key %j is one of its own', (key) => {
  const memory = createByteMemory({ ...limits, max: 3 })
  for (const other of [`${key}x`, `x${key}`]) memory.set(other, Buffer.from('another'))
  expect(memory.get(key)).toBeUndefined()
  memory.set(key, Buffer.from('this'))
  expect(memory.get(key)?.toString()).toBe('this')
})

test('where there are too many, one goes that was not used since it was passed over', () => {
  const memory = createByteMemory(limits)
  const set = (...keys: readonly string[]): void => keys.forEach((key) => memory.set(key, Buffer.from(key)))
  const found = (...keys: readonly string[]) => keys.map((key) => memory.get(key)?.toString())
  set('one', 'two')
  // Both entries were used when they were set. From here on neither is.
  set('three')
  expect(found('one', 'three')).toEqual([undefined, 'three'])
  set('four')
  expect(found('two', 'three', 'four')).toEqual([undefined, 'three', 'four'])
  expect(memory.size()).toBe(2)
})

test('a value that grows or shrinks, out of its slot and back, keeps no byte of the one before', () => {
  const memory = createByteMemory(limits)
  for (const length of [30, 1, 100, 101, 20, 500, 99]) {
    memory.set('one', Buffer.alloc(length, `${length} `))
    expect(memory.get('one')).toEqual(Buffer.alloc(length, `${length} `))
  }
})

test('of values that are longer than a slot a thousand are remembered', () => {
  const memory = createByteMemory({ max: 2_000, slotBytes: 10 })
  for (let i = 0; i < 1_500; i += 1) memory.set(`${i}`, Buffer.alloc(11, i))
  const found = Array.from({ length: 1_500 }, (_, i) => memory.get(`${i}`)).filter((value) => value !== undefined)
  expect(found).toHaveLength(1_000)
  expect(memory.get('1499')).toEqual(Buffer.alloc(11, 1499))
  // A forgotten entry does not come back when its slot is given to another entry, and it hides no shorter one.
  memory.set('1499', Buffer.from('short'))
  expect(memory.get('1499')?.toString()).toBe('short')
})

// All limits are smaller than the number of keys that the test writes.
test.each([300, 16, 3, 1])('of entries of any lengths, %i at most, none ever gets the bytes of another one', (max) => {
  const memory = createByteMemory({ max, slotBytes: 128 })
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
    // The newest entry is present, whichever entry was forgotten for it.
    if (memory.get(key)?.equals(value) !== true) lost += 1
  }
  expect({ mixedUp, lost }).toEqual({ mixedUp: [], lost: 0 })
  expect(found).toBeGreaterThan(1_000)
  expect(memory.size()).toBeLessThanOrEqual(max)
})

test('what is used again and again stays, whatever comes once beside it', () => {
  const memory = createByteMemory({ max: 50, slotBytes: 16 })
  let missed = 0
  for (let i = 0; i < 5_000; i += 1) {
    const key = `often ${i % 20}`
    if (i >= 20 && memory.get(key) === undefined) missed += 1
    memory.set(key, Buffer.from(key))
    memory.set(`once ${i}`, Buffer.from(key))
  }
  expect(missed).toBe(0)
})

test('what is only read again and again stays, too', () => {
  const memory = createByteMemory({ max: 3, slotBytes: 16 })
  memory.set('read', Buffer.from('value'))
  let missed = 0
  for (let i = 0; i < 100; i += 1) {
    memory.set(`once ${i}`, Buffer.from('value'))
    if (memory.get('read') === undefined) missed += 1
  }
  expect(missed).toBe(0)
})

test('of entries that nobody used the oldest goes first', () => {
  const memory = createByteMemory({ max: 3, slotBytes: 16 })
  for (const key of ['a', 'b', 'c', 'd', 'e']) memory.set(key, Buffer.from(key))
  expect(['a', 'b', 'c', 'd', 'e'].filter((key) => memory.get(key) !== undefined)).toEqual(['c', 'd', 'e'])
})

test('room is taken for 512 slots at a time, when it is needed', () => {
  let taken = 0
  const memory = createByteMemory({ max: 2_000, slotBytes: 16 }, (length) => {
    taken += length
    return Buffer.alloc(length)
  })
  const takenAfter = [1, 512, 513].map((count) => {
    for (let i = 0; i < count; i += 1) memory.set(`${i}`, Buffer.from('value'))
    return taken / 16
  })
  expect(takenAfter).toEqual([512, 512, 1024])
})

test('what is forgotten is overwritten', () => {
  const made: Buffer[] = []
  const memory = createByteMemory({ max: 1, slotBytes: 16 }, (length) => {
    const chunk = Buffer.alloc(length)
    made.push(chunk)
    return chunk
  })
  const holds = (text: string) => made.some((chunk) => chunk.includes(text))
  memory.set('one', Buffer.from('aaaabbbb'))
  expect(holds('aaaabbbb')).toBe(true)
  memory.set('one', Buffer.from('cc'))
  expect([holds('a'), holds('b'), holds('cc')]).toEqual([false, false, true])
  memory.set('two', Buffer.from('dddddd'))
  expect([holds('cc'), memory.get('one')]).toEqual([false, undefined])
  memory.set('two', Buffer.alloc(17, 'x'))
  expect(holds('d')).toBe(false)
})
