// Tests the length of temporary blocks (cloud §3.4).
import { expect, test } from 'vitest'
import { composeBlockEnd } from './authentication.ts'

const at = new Date(1_700_000_000_000)
const secondsOf = (first: number, blocksInRow: number): number | undefined => {
  const end = composeBlockEnd(first, blocksInRow, at)
  return end === null ? undefined : (end.getTime() - at.getTime()) / 1000
}

test('each block in a row lasts twice as long as the one before', () => {
  expect([1, 2, 3, 4, 5].map((blocksInRow) => secondsOf(300, blocksInRow))).toEqual([300, 600, 1200, 2400, 4800])
})

test('no block lasts longer than 30 days, however many there were', () => {
  const days = 24 * 60 * 60
  expect(secondsOf(300, 14)).toBe(300 * 2 ** 13)
  expect([15, 60, 5000, 2_147_483_647].map((blocksInRow) => secondsOf(300, blocksInRow))).toEqual(Array(4).fill(30 * days))
  expect([1, 2].map((blocksInRow) => secondsOf(30 * days, blocksInRow))).toEqual([30 * days, 30 * days])
})

test('switched off, a block has no end', () => {
  expect(composeBlockEnd(0, 1, at)).toBeNull()
})
