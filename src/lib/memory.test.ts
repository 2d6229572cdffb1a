// Tests the number of remembered entries, their time, and the effect of a clock that is set back.
import { expect, test } from 'vitest'
import { createMemory } from './memory.ts'

const one = { name: 'one' }
const two = { name: 'two' }

test('the entry least in use is forgotten when there are too many', () => {
  const memory = createMemory<object>({ max: 2 })
  memory.set('one', one)
  memory.set('two', two)
  memory.get('one')
  memory.set('three', {})
  expect([memory.get('one'), memory.get('two')]).toEqual([one, undefined])
  memory.delete('one')
  expect(memory.get('one')).toBeUndefined()
  memory.clear()
  expect(memory.get('three')).toBeUndefined()
})

test('entries are forgotten when they take too many bytes together, and one that alone takes too many is not remembered', () => {
  const memory = createMemory<{ readonly size: number }>({ max: 3, bytes: { max: 10, of: ({ size }) => size } })
  for (const [name, size] of Object.entries({ one: 4, two: 6, three: 5, four: 11 })) memory.set(name, { size })
  expect([memory.get('one'), memory.get('two'), memory.get('three'), memory.get('four')]).toEqual([
    undefined,
    undefined,
    { size: 5 },
    undefined,
  ])
  for (const name of ['five', 'six', 'seven']) memory.set(name, { size: 1 })
  expect([memory.get('three'), memory.size()]).toEqual([undefined, 3])
})

test.each([
  ['without', createMemory<{ readonly name: string }>({ max: 3 })],
  ['with', createMemory<{ readonly name: string }>({ max: 3, ttl: 10, clock: () => 1_000 })],
])('a memory %s a time lets go of the entries that somebody does not want', (_, memory) => {
  memory.set('one', one)
  memory.set('two', two)
  memory.set('three', one)
  memory.forget(({ name }) => name === 'one')
  expect([memory.get('one'), memory.get('two'), memory.get('three'), memory.size()]).toEqual([undefined, two, undefined, 1])
})

test('an entry ends after its time, and with a clock that is set back', () => {
  let now = 1_000
  const memory = createMemory<object>({ max: 2, ttl: 10, clock: () => now })
  memory.set('one', one)
  const at = (time: number) => {
    now = time
    return memory.get('one')
  }
  expect([at(1_000), at(1_009), at(1_010), at(999)]).toEqual([one, one, undefined, undefined])
})

test('an entry may have a time of its own', () => {
  let now = 1_000
  const memory = createMemory<object>({ max: 2, ttl: 10, clock: () => now })
  memory.set('one', one, { from: 990, to: 1_001 })
  expect(memory.get('one')).toBe(one)
  now = 1_001
  expect(memory.get('one')).toBeUndefined()
})
