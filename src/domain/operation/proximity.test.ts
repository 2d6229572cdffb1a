// Tests the one-time passwords of a proximity check (v3 §15.3) against public vectors.
import { expect, test } from 'vitest'
import { totp, totpStep } from './proximity.ts'

test('TOTP has the values of RFC 6238 for SHA-256', () => {
  const seed = Buffer.from('12345678901234567890123456789012')
  const otps = [59, 1111111109, 2000000000, 20000000000].map((time) => totp(seed, totpStep(time, 30), 8))
  expect(otps).toEqual(['46119246', '68084774', '90698825', '77737706'])
})
