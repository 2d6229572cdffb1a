// Tests who gets a place, who has more than its share, and who goes first.
import { expect, test } from 'vitest'
import { createPlaces } from './places.ts'

/** Gives each source as many offered places as `held` says; those of `a` are named a1, a2 and so on in their order. */
function setUp(limit: number, held: Readonly<Record<string, number>>) {
  const places = createPlaces<string>(limit)
  const all = Object.entries(held).flatMap(([source, count]) =>
    Array.from({ length: count }, (_, i) => {
      const place = places.take(source, `${source}${i + 1}`)
      places.offer(place)
      return place
    }),
  )
  return { places, all }
}

const MANY = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`s${i}`, 3]))

test.each([
  ['alone, below three quarters', 100, { a: 74 }, 'a', true],
  ['alone, at three quarters', 100, { a: 75 }, 'a', false],
  ['another, at three quarters', 100, { a: 75 }, 'b', true],
  ['whoever has no share, at three quarters', 100, { a: 75 }, undefined, true],
  ['more than an equal part, below three quarters', 100, { a: 60, b: 14 }, 'a', true],
  ['less than an equal part', 100, { a: 60, b: 39 }, 'b', true],
  ['an equal part', 100, { a: 49, b: 50 }, 'b', false],
  ['a first one, of many sources', 100, MANY, 'a', true],
  ['a fourth one, of many sources', 100, MANY, 's0', true],
  ['a fifth one, of many sources', 100, { ...MANY, s0: 4 }, 's0', false],
  ['everybody, at the limit', 100, { a: 60, b: 40 }, 'c', false],
  ['whoever has no share, at the limit', 100, { a: 60, b: 40 }, undefined, false],
])('is open to %s', (_, limit, held, source, isOpen) => {
  expect(setUp(limit, held).places.isOpenTo(source)).toBe(isOpen)
})

test.each([
  ['nobody below three quarters', 100, { a: 74 }, 'a', undefined],
  ['its own first, for one that has three quarters alone', 100, { a: 75 }, 'a', 'a1'],
  ['nobody for another one', 100, { a: 75 }, 'b', undefined],
  ['its own first, for one that has its part', 100, { a: 20, b: 40, c: 30 }, 'b', 'b1'],
  ['nobody for one that has less', 100, { a: 20, b: 40, c: 30 }, 'a', undefined],
  ['nobody where all have an equal part of what is taken', 100, { a: 20, b: 20, c: 20, d: 20 }, 'a', undefined],
  ['the first of who has most, when no place is left', 100, { a: 20, b: 50, c: 30 }, 'a', 'b1'],
  ['the same for a new one', 100, { a: 20, b: 50, c: 30 }, 'd', 'b1'],
  ['the same for whoever has no share', 100, { a: 20, b: 50, c: 30 }, undefined, 'b1'],
])('ends %s', (_, limit, held, source, surplus) => {
  expect(setUp(limit, held).places.findSurplus(source)).toBe(surplus)
})

test('the longest offered goes first, and what is withdrawn does not go', () => {
  const { places, all } = setUp(8, { a: 5, b: 2 })
  const [first, second, third] = all
  places.offer(first)
  places.withdraw(second)
  expect(places.findSurplus('a')).toBe('a3')
  places.leave(third)
  places.leave(third)
  expect(places.findSurplus('a')).toBe('a4')
})

test('a source with nothing to give up is passed over', () => {
  const { places, all } = setUp(8, { a: 6, b: 2 })
  for (const place of all.slice(0, 6)) places.withdraw(place)
  expect(places.findSurplus('c')).toBe('b1')
  expect(places.findSurplus('a')).toBeUndefined()
})

test('whoever has no share goes last, and only when no place is left', () => {
  const { places, all } = setUp(8, { a: 7 })
  for (const place of all) places.exempt(place)
  for (const place of all) places.offer(place)
  expect([places.findSurplus('a'), places.isOpenTo('a')]).toEqual([undefined, true])
  places.take('b', 'b1')
  expect(places.findSurplus('c')).toBe('a1')
  expect(places.listOffered()).toEqual([])
})

test('places that were left are places again', () => {
  const { places, all } = setUp(8, { a: 4, b: 4 })
  for (const place of all) places.leave(place)
  expect(places.isOpenTo('a')).toBe(true)
  places.offer(all[0])
  places.exempt(all[1])
  expect([places.findSurplus('a'), places.listOffered()]).toEqual([undefined, []])
})
