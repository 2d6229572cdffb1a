// Random bytes of the system's generator, which are drawn ahead.
import { expect, test } from 'vitest'
import { systemPlatform } from './platform.ts'

test('random bytes have the length asked for, share no memory, and none comes twice', () => {
  const seen = new Set<string>()
  const kept: { readonly bytes: Uint8Array; readonly hex: string }[] = []
  for (let i = 0; i < 3_000; i += 1) {
    const length = [8, 12, 16, 32, 48, 64, 65][i % 7] ?? 0
    const bytes = systemPlatform.randomBytes(length)
    const hex = Buffer.from(bytes).toString('hex')
    expect(bytes).toHaveLength(length)
    expect(bytes.buffer.byteLength).toBe(length)
    for (let at = 0; at < length; at += 8) seen.add(hex.slice(2 * at, 2 * at + 16))
    kept.push({ bytes, hex })
  }
  const parts = kept.reduce((sum, { bytes }) => sum + Math.ceil(bytes.length / 8), 0)
  // The last part of 12 or 65 bytes is short, and two of them may be the same.
  const short = kept.filter(({ bytes }) => bytes.length % 8 !== 0).length
  expect(seen.size).toBeGreaterThanOrEqual(parts - short)
  for (const { bytes, hex } of kept) expect(Buffer.from(bytes).toString('hex')).toBe(hex)
})

test('no byte value is left out', () => {
  const counts = new Uint32Array(256)
  for (let i = 0; i < 2_000; i += 1) for (const byte of systemPlatform.randomBytes(64)) counts[byte] = (counts[byte] ?? 0) + 1
  // 500 of each are expected; 8 standard deviations of either side are 180.
  expect(Math.min(...counts)).toBeGreaterThan(320)
  expect(Math.max(...counts)).toBeLessThan(680)
})
